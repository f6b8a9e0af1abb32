// row_stream.h - the rows of recordings whose samples come in pieces, as from a microphone.
//
// In:  samples of one channel at the front end's rate, in pieces of any size: float with 1 as full
//      scale, or int16 (value / 32768).
// Out: float rows [n, columns], each as soon as no later sample can change it.
//
// The bits of a row are those of the whole recording, whatever the pieces. A stream holds the
// samples that further frames need and what its steps keep: a bounded number, unless a step is
// at_the_end().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/row_pass.h"

namespace melflow {

// From samples to rows, without the state of a recording: shared by streams and threads.
class RowFront {
 public:
  explicit RowFront(std::shared_ptr<const MelKernel> kernel) : kernel_(std::move(kernel)) {}
  // Adds a step, which follows those added before. Returns whether all rows come at_the_end() now.
  bool add(std::shared_ptr<const FinishStep> step);

  [[nodiscard]] const MelKernel& kernel() const { return *kernel_; }
  [[nodiscard]] std::span<const std::shared_ptr<const OrderedStep>> steps() const { return steps_; }
  // The values of a row after all steps.
  [[nodiscard]] int columns() const;
  // The number of rows that are out when `samples` have come in and more may follow.
  [[nodiscard]] std::int64_t rows_ready(std::int64_t samples) const;
  // How long rows wait: row t is out when t * hop and this number of samples have come in. `hop`
  // [samples]: from a row to the next, after all steps. Not for steps at_the_end().
  [[nodiscard]] std::int64_t most_delay(std::int64_t hop) const;

 private:
  std::shared_ptr<const MelKernel> kernel_;
  std::vector<std::shared_ptr<const OrderedStep>> steps_;
};

// Rows in memory that grows, [rows, columns].
using RowVector = std::vector<float>;

// One recording. From one thread at a time; streams share nothing but their front.
class RowStream {
 public:
  // Work space of one thread, for streams of one front.
  class Scratch {
   public:
    explicit Scratch(const RowFront& front) : kernel_(front.kernel().make_scratch()) {}

   private:
    friend class RowStream;
    MelKernel::Scratch kernel_;
    std::vector<float> rows_, between_[2];
    std::vector<std::int64_t> ready_;  // by stream
  };

  // Samples that one stream gets, and where its rows go.
  struct Feed {
    RowStream* stream = nullptr;
    const void* samples = nullptr;
    std::int64_t count = 0;
    bool is_int16 = false;
    bool is_last = false;       // no samples follow
    RowVector* rows = nullptr;  // further rows are appended
  };

  // `noise_key`: of the recording, for dither (mel_signal.h).
  explicit RowStream(std::shared_ptr<const RowFront> front, std::uint64_t noise_key = 0);
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // Hands samples to streams of one front; each occurs once. Frames of several streams are computed
  // together, as many as a vector has lanes. After its last samples a stream needs a reset(). What
  // `feeds` has is used up.
  static void push(std::span<Feed> feeds, Scratch& scratch);
  // Begins another recording.
  void reset();
  // Takes memory at once, so that push() of up to `most` samples to this stream, with this scratch,
  // needs none; also after reset(). Returns the most rows that such a push gives. Does not count
  // the last push, steps at_the_end(), and the memory of Feed::rows.
  std::int64_t reserve(std::int64_t most, Scratch& scratch);

  [[nodiscard]] const RowFront& front() const { return *front_; }
  // The rows that were given.
  [[nodiscard]] std::int64_t rows() const { return links_.empty() ? frames_ : links_.back().made; }

 private:
  // A step on its way.
  struct Link {
    std::unique_ptr<RowPass> pass;
    std::int64_t seen = 0, made = 0;
  };

  void append(Feed& feed);
  void add_frames(std::int64_t count, bool is_last, float* out, Scratch& scratch) const;
  void drop_samples();
  void pass_on(const float* rows, std::int64_t count, bool is_last, RowVector& out,
               Scratch& scratch);

  std::shared_ptr<const RowFront> front_;
  std::uint64_t noise_key_;
  std::vector<float> samples_;  // samples [begin_, seen_) of the recording
  std::int64_t begin_ = 0, seen_ = 0;
  std::int64_t frames_ = 0;  // computed so far
  std::vector<Link> links_;  // [steps]
  std::int64_t reserved_frames_ = 0;
};

}  // namespace melflow
