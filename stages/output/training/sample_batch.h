// Batches of samples for a program that trains, and the queue in which they wait for it.
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

namespace melflow {

struct SampleBatch {
  struct Rows {
    /// [samples, frames, columns], or for whole recordings [samples, rows, columns], padded with 0
    /// to the longest. Without the last axis for rows of samples.
    Buffer data;
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> lengths;  ///< of whole recordings [rows]; else empty
  };
  std::vector<Rows> inputs;  ///< of each, in the order of the stage's
  NumberType type = NumberType::float32;
  std::vector<std::int64_t> files;    ///< the places of their recordings in the list
  std::vector<std::int64_t> offsets;  ///< the row of its recording that a sample begins with
  std::string remark;                 ///< on the pass as a whole, said once; "": none
};

/// Bounded. One thread puts, one takes.
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for a place; false: nobody takes batches any more.
  bool put(SampleBatch batch);
  /// No more batches come.
  void end();
  /// Waits for a batch, so long at most [s].
  enum class State { batch, ended, nothing_yet };
  State take(SampleBatch& out, double seconds);
  /// Nobody takes batches any more; those that wait are dropped.
  void close();
  [[nodiscard]] std::size_t waiting() const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SampleBatch> batches_;
  bool is_ended_ = false, is_closed_ = false;
};

/// Why recordings are skipped that a program does not take.
inline constexpr const char* kInOtherSplit = "is in another split";
inline constexpr const char* kForOtherRank = "is for another rank";

/// What a program that trains says of a pass over the corpus; a service of the run.
struct BatchDelivery {
  std::shared_ptr<BatchQueue> queue;
  /// Of batches: what one pass had is used again by the next. Null: each has its own.
  std::shared_ptr<BufferPool> pool;
  std::uint64_t epoch = 0;
  std::uint64_t skip = 0;  ///< so many samples were delivered before the pass was broken off
  std::string split;       ///< whose recordings it takes; "": all
  /// Of `ranks` programs this one takes every `ranks`-th of these recordings, from the number
  /// `rank` on.
  std::size_t rank = 0, ranks = 1;
};

}  // namespace melflow
