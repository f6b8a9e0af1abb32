#include "pipeline/visit_log.h"

#include <new>

namespace melflow {

void VisitLog::add(const Visit& visit) noexcept {
  if (count_.load(std::memory_order_relaxed) < most_ &&
      count_.fetch_add(1, std::memory_order_relaxed) < most_) {
    try {
      threads_.local().push_back(visit);
      return;
    } catch (const std::bad_alloc&) {  // the run goes on without it
    }
  }
  left_out_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<const std::deque<Visit>*> VisitLog::by_thread() const {
  std::vector<const std::deque<Visit>*> out;
  for (const std::deque<Visit>& thread : threads_) out.push_back(&thread);
  return out;
}

}  // namespace melflow
