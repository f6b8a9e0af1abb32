// A histogram of durations in constant memory. Durations below 16 ns have a bucket each; above,
// every power of two is divided into 16 buckets of equal width, so a percentile, the middle of a
// bucket, is accurate to 1/32 (3.2 %). The maximum is exact. Durations above 4.9 hours count in the
// last bucket. Not locked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace melflow {

class DurationHistogram {
 public:
  /// Adds `items` items that took `nanoseconds` each.
  void add(std::int64_t nanoseconds, std::size_t items = 1);
  DurationHistogram& operator+=(const DurationHistogram& more);

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

}  // namespace melflow
