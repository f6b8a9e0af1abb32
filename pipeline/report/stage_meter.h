// ServiceTimes is a histogram of durations in constant memory. Durations below 16 ns have a bucket
// each; above, every power of two is divided into 16 buckets of equal width, so a percentile, the
// middle of a bucket, is accurate to 1/32 (3.2 %). The maximum is exact. Durations above 4.9 hours
// count in the last bucket.
//
// StageMeter measures the cost of one node's stage: how long its items take, the processor's share
// of that, and which took longest. It uses the times that the node reads anyway. A visit is the
// time between begin and finish: one call of the stage, or one for each of several small files,
// which then share the time equally.
//
// Reading the processor's clock costs a system call, so it is read for the first 64 visits and then
// for one in eleven, which counts for eleven: a prime, so that it does not align with batches of
// files. processor_share() is the ratio of both clocks.
//
// Both classes are used under a lock of their owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/base/measuring.h"
#include "pipeline/report/report.h"

namespace melflow {

class ServiceTimes {
 public:
  /// Adds `items` items that took `nanoseconds` each.
  void add(std::int64_t nanoseconds, std::size_t items = 1);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The time within which the `share` (0 to 1) of the items was done [s]; 0 without items.
  [[nodiscard]] double percentile(double share) const;
  [[nodiscard]] double greatest() const;  ///< [s]

 private:
  static constexpr int kSubBits = 4;     // 16 buckets per power of two
  static constexpr int kLastPower = 43;  // the last power begins at 2^43 ns

  static constexpr std::size_t kBuckets = (kLastPower - kSubBits + 2) << kSubBits;
  static std::size_t bucket(std::uint64_t nanoseconds);
  static double middle(std::size_t bucket);  // [ns]

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::int64_t greatest_ = 0;
};

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
  [[nodiscard]] ServiceReport service() const;
  /// The longest visits, at most kSlowest, in descending order.
  [[nodiscard]] const std::vector<SlowVisit>& slowest() const { return slow_; }

  static constexpr std::size_t kSlowest = 5;

 private:
  static constexpr std::uint64_t kAll = 64, kEvery = 11;
  void keep_slow(const Visit& visit);

  ServiceTimes times_;
  std::uint64_t visits_ = 0;
  std::int64_t cpu_ = 0, measured_ = 0;  // [ns], weighted
  std::int64_t slow_from_ = 0;           // the least of the slowest, once there are enough [ns]
  std::vector<SlowVisit> slow_;
};

}  // namespace melflow
