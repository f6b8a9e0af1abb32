#include "pipeline/report/stage_meter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>

namespace melflow {
std::size_t ServiceTimes::bucket(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kSub = 1U << kSubBits;
  if (nanoseconds < kSub) return nanoseconds;
  const int power = static_cast<int>(std::bit_width(nanoseconds)) - 1;
  if (power > kLastPower) return kBuckets - 1;
  const std::uint64_t part = (nanoseconds >> (power - kSubBits)) & (kSub - 1);
  return (static_cast<std::size_t>(power - kSubBits + 1) << kSubBits) + part;
}

double ServiceTimes::middle(std::size_t bucket) {
  constexpr std::size_t kSub = 1U << kSubBits;
  if (bucket < kSub) return static_cast<double>(bucket);
  const int power = static_cast<int>(bucket >> kSubBits) + kSubBits - 1;
  const double width = std::ldexp(1.0, power - kSubBits);
  return std::ldexp(1.0, power) + width * (static_cast<double>(bucket & (kSub - 1)) + 0.5);
}

void ServiceTimes::add(std::int64_t nanoseconds, std::size_t items) {
  if (items == 0) return;
  const std::int64_t took = std::max<std::int64_t>(nanoseconds, 0);
  counts_[bucket(static_cast<std::uint64_t>(took))] += items;
  count_ += items;
  greatest_ = std::max(greatest_, took);
}

double ServiceTimes::percentile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t below = 0;
  std::size_t at = 0;
  while ((below += counts_[at]) < rank) ++at;
  return std::min(middle(at) * 1e-9, greatest());
}

double ServiceTimes::greatest() const {
  return static_cast<double>(greatest_) * 1e-9;
}

std::int64_t StageMeter::thread_cpu() {
  timespec t{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void StageMeter::add(const Visit& visit) {
  if (!kMeasures) return;
  const std::size_t calls = std::max<std::size_t>(visit.calls, 1);
  times_.add(visit.took / static_cast<std::int64_t>(calls), calls);
  const std::uint64_t before = visits_++;
  if (visit.cpu >= 0) {
    const std::int64_t weight = before < kAll ? 1 : kEvery;
    cpu_ += weight * visit.cpu;
    measured_ += weight * visit.took;
  }
  if (visit.is_of_files && visit.took > slow_from_) keep_slow(visit);
}

void StageMeter::keep_slow(const Visit& visit) {
  const SlowVisit slow{static_cast<double>(visit.took) * 1e-9, visit.index, visit.files};
  const auto at = std::find_if(slow_.begin(), slow_.end(), [&slow](const SlowVisit& other) {
    return other.seconds < slow.seconds;
  });
  slow_.insert(at, slow);
  if (slow_.size() > kSlowest) slow_.pop_back();
  if (slow_.size() == kSlowest)
    slow_from_ = static_cast<std::int64_t>(slow_.back().seconds * 1e9);
}

double StageMeter::processor_share() const {
  if (measured_ <= 0) return 0;
  return std::min(1.0, static_cast<double>(cpu_) / static_cast<double>(measured_));
}

ServiceReport StageMeter::service() const {
  return {.calls = times_.count(),
          .p50 = times_.percentile(0.5),
          .p90 = times_.percentile(0.9),
          .p99 = times_.percentile(0.99),
          .greatest = times_.greatest()};
}

}  // namespace melflow
