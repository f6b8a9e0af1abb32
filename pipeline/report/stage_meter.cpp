#include "pipeline/report/stage_meter.h"

#include <algorithm>
#include <ctime>

namespace melflow {

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
  if (slow_.size() == kSlowest) slow_from_ = static_cast<std::int64_t>(slow_.back().seconds * 1e9);
}

double StageMeter::processor_share() const {
  if (measured_ <= 0) return 0;
  return std::min(1.0, static_cast<double>(cpu_) / static_cast<double>(measured_));
}

}  // namespace melflow
