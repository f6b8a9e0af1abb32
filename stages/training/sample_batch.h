// Batches of samples for a training program, and the queue in which they wait for it.
//
// A sample is a row of frames (where recordings are cut into windows), or all rows of a recording.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/number_type.h"
#include "pipeline/stage/item.h"

namespace melflow {

struct SampleBatch {
  struct Rows {
    /// [samples, frames, columns], or for whole recordings [samples, rows, columns], padded with 0
    /// to the longest. Without the last axis for rows of audio samples.
    Buffer data;
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> lengths;  ///< of whole recordings [rows]; else empty
  };
  std::vector<Rows> inputs;  ///< by input, in the stage's order
  NumberType type = NumberType::float32;
  std::vector<std::int64_t> files;    ///< positions of their recordings in the list
  std::vector<std::int64_t> offsets;  ///< by sample: the row of its recording with which it begins
  /// By sample: the result of the recording to which it belongs; null if the recording has no
  /// results.
  std::vector<std::shared_ptr<const SubItem>> results;
  std::vector<std::int64_t> result_offsets;  ///< by sample: the row of its result, likewise
};

/// A bounded queue; one thread puts, one takes.
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for a free slot; false: nobody takes batches any more.
  bool put(SampleBatch batch);
  /// Notes that no more batches come.
  void end();
  /// Waits for a batch, for at most `seconds` [s].
  enum class State { batch, ended, nothing_yet };
  State take(SampleBatch& out, double seconds);
  /// Notes that nobody takes batches any more; drops those that wait.
  void close();
  [[nodiscard]] std::size_t waiting() const;

  /// Adds a warning about the pass as a whole, for the program. From any thread.
  void warn(std::string text);
  /// Returns the warnings since the last call.
  [[nodiscard]] std::vector<std::string> take_warnings();

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SampleBatch> batches_;
  std::vector<std::string> warnings_;
  bool is_ended_ = false, is_closed_ = false;
};

/// The reasons for skipping recordings that a program does not take.
inline constexpr const char* kInOtherSplit = "is in another split";
inline constexpr const char* kForOtherRank = "is for another rank";

}  // namespace melflow
