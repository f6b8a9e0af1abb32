// Measures the cost of one node's stage: how long its items take, the processor's share
// of that, and which took longest. It uses the times that the node reads anyway. A visit is the
// time between begin and finish: one call of the stage, or one for each of several small files,
// which then share the time equally.
//
// Reading the processor's clock costs a system call, so it is read for the first 64 visits and then
// for one in eleven, which counts for eleven: a prime, so that it does not align with batches of
// files. processor_share() is the ratio of both clocks.
//
// Used under a lock of its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/base/duration_histogram.h"
#include "pipeline/base/measuring.h"
#include "pipeline/report/report.h"

namespace melflow {

class StageMeter {
 public:
  /// A completed visit.
  struct Visit {
    std::int64_t took = 0;     ///< [ns]
    std::int64_t cpu = -1;     ///< processor time [ns]; -1: not measured
    std::size_t calls = 1;     ///< of the stage
    std::size_t index = 0;     ///< of its first source item
    std::size_t files = 1;     ///< source items in it
    bool is_of_files = false;  ///< whether `index` and `files` are valid
  };
  void add(const Visit& visit);

  /// Whether a visit that begins after `visits` others should measure its processor time.
  [[nodiscard]] static bool wants_cpu(std::uint64_t visits) {
    return kMeasures && (visits < kAll || visits % kEvery == 0);
  }
  [[nodiscard]] std::uint64_t visits() const { return visits_; }
  /// The processor time of the calling thread so far [ns].
  static std::int64_t thread_cpu();

  /// Processor time divided by time in the stage, 0 to 1; 0 before any was measured.
  [[nodiscard]] double processor_share() const;
  [[nodiscard]] ServiceReport service() const { return service_report(times_); }
  /// The longest visits, at most kSlowest, in descending order.
  [[nodiscard]] const std::vector<SlowVisit>& slowest() const { return slow_; }

  static constexpr std::size_t kSlowest = 5;

 private:
  static constexpr std::uint64_t kAll = 64, kEvery = 11;
  void keep_slow(const Visit& visit);

  DurationHistogram times_;
  std::uint64_t visits_ = 0;
  std::int64_t cpu_ = 0, measured_ = 0;  // [ns], weighted
  std::int64_t slow_from_ = 0;           // the least of the slowest, once there are enough [ns]
  std::vector<SlowVisit> slow_;
};

}  // namespace melflow
