#include "pipeline/base/duration_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace melflow {

std::size_t DurationHistogram::bucket(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kSub = 1U << kSubBits;
  if (nanoseconds < kSub) return nanoseconds;
  const int power = static_cast<int>(std::bit_width(nanoseconds)) - 1;
  if (power > kLastPower) return kBuckets - 1;
  const std::uint64_t part = (nanoseconds >> (power - kSubBits)) & (kSub - 1);
  return (static_cast<std::size_t>(power - kSubBits + 1) << kSubBits) + part;
}

double DurationHistogram::middle(std::size_t bucket) {
  constexpr std::size_t kSub = 1U << kSubBits;
  if (bucket < kSub) return static_cast<double>(bucket);
  const int power = static_cast<int>(bucket >> kSubBits) + kSubBits - 1;
  const double width = std::ldexp(1.0, power - kSubBits);
  return std::ldexp(1.0, power) + width * (static_cast<double>(bucket & (kSub - 1)) + 0.5);
}

void DurationHistogram::add(std::int64_t nanoseconds, std::size_t items) {
  if (items == 0) return;
  const std::int64_t took = std::max<std::int64_t>(nanoseconds, 0);
  counts_[bucket(static_cast<std::uint64_t>(took))] += items;
  count_ += items;
  greatest_ = std::max(greatest_, took);
}

double DurationHistogram::percentile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t below = 0;
  std::size_t at = 0;
  while ((below += counts_[at]) < rank) ++at;
  return std::min(middle(at) * 1e-9, greatest());
}

double DurationHistogram::greatest() const { return static_cast<double>(greatest_) * 1e-9; }

DurationHistogram& DurationHistogram::operator+=(const DurationHistogram& more) {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += more.counts_[i];
  count_ += more.count_;
  greatest_ = std::max(greatest_, more.greatest_);
  return *this;
}

}  // namespace melflow
