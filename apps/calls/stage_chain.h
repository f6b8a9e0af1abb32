// Runs a pipeline's stages one after the other for a single recording; the results equal those of
// the pipeline.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/run/stage_runner.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/manifest.h"
#include "stages/training/batch_source.h"

namespace melflow {

/// What each recording of a call may take.
struct RowCall {
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  double most_seconds = std::numeric_limits<double>::infinity();  ///< of the recording
  std::int64_t most_samples = kAny;  ///< of each of its channels, at its own rate
  std::int64_t most_rows = kAny;
  double deadline_seconds = 0;  ///< after the call
  std::optional<Clock::time_point> deadline;
  std::atomic<bool> is_ended{false};  ///< from any thread: nobody waits for the rows any more

  /// `seconds`: from now; far ones count as none.
  void set_deadline(double seconds);
};

/// Memory of the caller for the rows of a recording.
struct RowSpace {
  std::byte* data = nullptr;  ///< null: none, the rows come in memory of their own
  std::int64_t rows = 0;      ///< how many it has room for
};

/// Thrown where the deadline of a call has passed, or nobody waits for it any more.
struct CallEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class StageChain {
 public:
  /// The input: files of the source's list, or recordings that the caller gives, as samples or as a
  /// file, which no stage cuts into utterances.
  enum class Input { listed, given };
  /// Takes the stages of `plan`, which must have one path from its source to one node of the stage
  /// `batches`. `name`: the pipeline's name in messages. Throws RunError.
  StageChain(Plan plan, const std::string& name, Input input);
  StageChain(const StageChain&) = delete;
  StageChain& operator=(const StageChain&) = delete;

  /// Rows of a recording or an utterance.
  struct Rows {
    /// ok, perhaps with a warning; or skipped or failed, with the reason.
    Ledger::Entry entry;
    std::vector<std::byte> values;  ///< [count, frames, columns] of type(); empty if in a RowSpace
    std::int64_t count = 0;
    std::int64_t first = 0;  ///< number of the first row in `values`
    bool is_whole = true;    ///< whether all rows are there
    int file_rate = 0;       ///< sample rate of the recording itself [Hz]
    [[nodiscard]] bool has(std::int64_t begin, std::int64_t rows) const {
      return begin >= first && begin + rows <= first + count;
    }
  };
  /// The rows of a file: one element, or one per utterance cut out of it.
  using Recording = std::vector<Rows>;
  /// Computes the entries [first, first + count) of `list`: one file, or the utterances that are
  /// cut out of it in one go. Thread-safe.
  [[nodiscard]] Recording recording(std::shared_ptr<const FileRef> file, const Manifest& list,
                                    std::size_t first, std::size_t count) const;
  /// Computes a file that is not cut into utterances. `expected`: its number of rows, or -1 where
  /// not known. Rows outside [begin, end) may be missing in the result.
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] Rows rows(std::shared_ptr<const FileRef> file, std::int64_t expected,
                          std::int64_t begin = 0, std::int64_t end = kAll) const;
  [[nodiscard]] bool cuts() const { return cutter_.has_value(); }
  /// Whether the number of a file's rows can follow from its length alone.
  [[nodiscard]] bool tells_counts() const { return header_ != nullptr; }
  /// Returns that number by the file's header; nothing where it takes the samples to know it.
  [[nodiscard]] std::optional<std::int64_t> count_by_header(const FileRef& file) const;
  /// Computes samples of one channel, as if from a file or an utterance. This and the two below, of
  /// a chain of given recordings, throw RunError where a stage refuses the recording or it takes
  /// more than `call` allows, CallEnded, and std::invalid_argument where `out` is too short.
  [[nodiscard]] Rows rows(const Samples& samples, int sample_rate, const RowCall& call,
                          const RowSpace& out) const;
  /// Computes a file.
  [[nodiscard]] Rows rows(const std::string& path, const RowCall& call, const RowSpace& out) const;
  /// Computes the bytes of a file, which the decoders read where they are.
  [[nodiscard]] Rows rows(std::span<const std::byte> file, const RowCall& call,
                          const RowSpace& out) const;

  /// The source, which is not part of the chain.
  [[nodiscard]] StageRunner& source() { return *source_; }
  /// Lists the source's items, and opens the cache of decoded audio if one is used.
  void start_source();
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  /// The name of the rows in a batch.
  [[nodiscard]] const std::string& row_name() const { return row_name_; }
  [[nodiscard]] NumberType type() const { return type_; }
  /// [frames, columns], as far as rows have these dimensions.
  [[nodiscard]] std::vector<std::size_t> row_shape() const { return melflow::row_shape(*info_); }
  /// The warnings of the plan.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// The fingerprint of outputs with these rows.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  /// The settings that it is of, a list of stages as JSON.
  [[nodiscard]] const std::string& settings() const { return settings_; }

 private:
  struct Step {
    std::string name;
    std::unique_ptr<StageRunner> stage;  ///< null: collects recordings for the next step
  };
  using Blocks = std::vector<std::shared_ptr<const void>>;
  void add(PlanNode&& node, const std::string& name);
  void find_lengths();
  using Take = std::function<bool(std::shared_ptr<const void>)>;
  // Gets the number of a step and what it is about to take, also of the end; returns why the
  // recording fails there, or "".
  using Look = std::function<std::string(std::size_t, const void*)>;
  static Ledger::Entry pass(std::span<const Step> steps, const Blocks& in, const Take& take,
                            const Look& look = nullptr);
  struct Wanted {
    std::int64_t expected = -1, begin = 0, end = kAll;
    std::int64_t most = kAll;  // rows of a recording
    RowSpace out = {};
  };
  [[nodiscard]] Rows rows(std::span<const Step> steps, const Blocks& blocks, const Wanted& wanted,
                          const Look& look = nullptr) const;
  [[nodiscard]] Rows given(std::size_t first_step, std::shared_ptr<const void> recording,
                           const RowCall& call, const RowSpace& out) const;
  void add_given(PlanNode&& node, const std::string& name);
  [[nodiscard]] std::optional<ItemError> unstorable_in(const MelPart& part) const;

  std::unique_ptr<StageRunner> source_, keep_;  // keep_ opens a store of decoded audio
  std::vector<Step> before_;                    // before the step that cuts utterances, if any
  std::optional<Step> cutter_;
  std::vector<Step> steps_;
  // Of given recordings: the first step that takes bytes, the first that takes samples.
  std::size_t bytes_step_ = 0;
  std::optional<std::size_t> samples_step_;
  std::string no_files_;  // why files cannot be given; "" if they can
  const ReadsLength* header_ = nullptr;
  std::vector<const TellsLength*> lengths_;  // the stages after the decoder
  std::shared_ptr<const FeatureInfo> info_;
  NumberType type_ = NumberType::float32;
  std::string row_name_, fingerprint_;
  std::string settings_;
  std::vector<std::string> warnings_;
};

}  // namespace melflow
