// How long single items took: a histogram of durations whose memory does not depend on how many
// there were. Durations below 16 ns have a bucket each; above, every power of two is cut into 16
// buckets of equal width, so a percentile is the middle of a bucket and at most 1/32 (3.2 %) off.
// The greatest is kept as it is. What lies above 4.9 hours counts in the last bucket.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace melflow {

class ServiceTimes {
 public:
  /// Counts `items` items that took `nanoseconds` each. From any thread, without a lock.
  void add(std::int64_t nanoseconds, std::size_t items = 1);

  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// The time within which the `share` (0 to 1) of the items was done [s]; 0 without items.
  [[nodiscard]] double percentile(double share) const;
  [[nodiscard]] double greatest() const;  ///< [s]

 private:
  static constexpr int kSubBits = 4;     // 16 buckets a power of two
  static constexpr int kLastPower = 43;  // the last of them begins at 2^43 ns

  static constexpr std::size_t kBuckets = (kLastPower - kSubBits + 2) << kSubBits;
  static std::size_t bucket(std::uint64_t nanoseconds);
  static double middle(std::size_t bucket);  // [ns]

  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::int64_t> greatest_{0};
};

}  // namespace melflow
