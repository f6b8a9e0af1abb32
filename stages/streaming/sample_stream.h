// Rows of samples that come as they are recorded: the stages of a pipeline from resampling on, with
// the state of one recording between the pieces. No graph and no threads of its own.
//
// In:  samples of one channel at a fixed rate, in pieces of any size, int16 or float.
// Out: float rows [n, columns], bit for bit those of the whole recording, as soon as no later
//      sample can change them; what needs the whole recording is refused by its option's name, or
//      waits for the end (finish_only).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/base/scratch_pool.h"
#include "pipeline/plan/plan.h"
#include "stages/audio/resampler.h"
#include "stages/features/mel/row_stream.h"
#include "stages/items.h"

namespace melflow {

class MelFront;

/// What streams of one front end share. All functions may be called from any thread.
class StreamFront {
 public:
  /// How long rows wait for samples: row t is out at the latest when t * hop + `samples` samples
  /// have been pushed, with the hop in samples of the stream.
  struct Delay {
    std::int64_t samples = 0;
    double seconds = 0;
  };

  /// Takes the stages of `plan` from its decoder to its rows, of which there is one way; what is
  /// before and behind is left out. `sample_rate` [Hz]: of the samples that come. `finish_only`:
  /// rows come at the end if an option needs the whole recording. Throws RunError with every stage
  /// or option that cannot be in a stream.
  StreamFront(const Plan& plan, int sample_rate, bool finish_only);
  StreamFront(const StreamFront&) = delete;
  StreamFront& operator=(const StreamFront&) = delete;
  ~StreamFront();

  [[nodiscard]] int sample_rate() const { return sample_rate_; }
  [[nodiscard]] int columns() const { return rows_->columns(); }
  /// The description of the rows.
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  /// Whether all rows come at the end.
  [[nodiscard]] bool is_at_end() const { return is_at_end_; }
  /// The delay; nothing where all rows come at the end.
  [[nodiscard]] std::optional<Delay> delay() const;

 private:
  friend class SampleStream;
  struct Scratch;

  void add(const PlanNode& node, bool finish_only, std::vector<std::string>& problems);
  void add_mel(const PlanNode& node, const MelFront& front, bool finish_only,
               std::vector<std::string>& problems);
  [[nodiscard]] std::int64_t most_lag() const;

  int sample_rate_;
  std::optional<ResampleOptions> resampling_;  // nothing where the rate stays
  std::shared_ptr<RowFront> rows_;
  std::shared_ptr<const FeatureInfo> info_;
  std::uint64_t noise_key_ = 0;
  bool is_at_end_ = false;
  mutable ScratchPool<Scratch> scratch_;
  mutable std::once_flag has_lag_;
  mutable std::int64_t lag_ = 0;  // of resampling [samples]
};

/// One recording. Any thread may call; two at once are refused.
class SampleStream {
 public:
  struct Feed {
    SampleStream* stream = nullptr;
    Samples samples;
    bool is_last = false;       ///< no more follow
    RowVector* rows = nullptr;  ///< further rows are appended
    std::string error = {};     ///< set where the stream has failed; it then takes no more samples
  };

  explicit SampleStream(std::shared_ptr<const StreamFront> front);
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;
  ~SampleStream();

  /// Hands samples to streams of one front. Throws RunError, before anything has changed, where
  /// they have several fronts, one occurs twice or is used by another thread, or has ended.
  static void push(std::span<Feed> feeds);
  /// Begins another recording.
  void reset();

  [[nodiscard]] const std::shared_ptr<const StreamFront>& front() const { return front_; }

 private:
  class Use;
  static void compute(const StreamFront& front, std::span<Feed> feeds);
  [[nodiscard]] std::string resample(Feed& feed, std::int64_t count, std::vector<float>& work,
                                     std::vector<float>& out);

  std::shared_ptr<const StreamFront> front_;
  RowStream rows_;
  std::unique_ptr<Resampler> resampler_;
  std::string ended_;  // why no samples are taken; "" if they are
  std::atomic_flag is_used_ = ATOMIC_FLAG_INIT;
};

}  // namespace melflow
