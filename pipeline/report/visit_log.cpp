#include "pipeline/report/visit_log.h"

#include <algorithm>
#include <new>

namespace melflow {

void VisitLog::add(const Visit& visit) noexcept {
  try {
    Thread& thread = threads_.local();
    const auto at = [this](std::chrono::steady_clock::time_point t) {
      return std::max(0.0, std::chrono::duration<double>(t - began_).count());
    };
    thread.times.add(static_cast<std::size_t>(visit.node), at(visit.began), at(visit.ended));
    if (count_.load(std::memory_order_relaxed) < most_ &&
        count_.fetch_add(1, std::memory_order_relaxed) < most_) {
      thread.visits.push_back(visit);
      return;
    }
  } catch (const std::bad_alloc&) {  // the run continues without this visit
  }
  left_out_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<const std::deque<Visit>*> VisitLog::by_thread() const {
  std::vector<const std::deque<Visit>*> out;
  for (const Thread& thread : threads_) out.push_back(&thread.visits);
  return out;
}

std::vector<BusyTimes> VisitLog::times_by_thread() const {
  std::vector<BusyTimes> out;
  for (const Thread& thread : threads_) out.push_back(thread.times);
  return out;
}

}  // namespace melflow
