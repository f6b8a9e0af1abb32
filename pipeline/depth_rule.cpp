#include "pipeline/depth_rule.h"

#include <algorithm>

namespace melflow {
namespace {

// The consumer had nothing to do, and the producer had no place: at different moments, so a deeper
// queue would have let the one work ahead for the other. Less than this is the unrest of a machine
// that does other things, too.
constexpr double kBothWaited = 1.0 / 16;
// The consumer never waits and the producer mostly does: the queue is full all the time, and what
// is at its end is only older and colder.
constexpr double kNeverStarved = 1.0 / 256;
constexpr double kMostlyHeldBack = 1.0 / 2;

// Of the workers' time; the graph itself takes some. Where every worker has something to do, a place
// more would only change what.
constexpr double kIdle = 1.0 / 8;

}  // namespace

std::size_t DepthRule::next(const Seen& seen, const std::function<double()>& workers_busy) {
  // The producer may have waited for another branch's queue, or for memory: only items that found
  // this queue full say that it was this one.
  const auto held_back_for = [&seen](double share) {
    return seen.held_back > share && seen.full > share;
  };
  if (seen.starved > kBothWaited && held_back_for(kBothWaited)) {
    // Every place may hold an item and its share of the budget, which others need as well.
    if (workers_busy() >= 1 - kIdle || seen.is_memory_wanted || seen.is_memory_half_used)
      return capacity_;
    settled_least_ = std::min(capacity_ + 1, greatest_);
    capacity_ = std::min(2 * capacity_, greatest_);
  } else if (seen.starved <= kNeverStarved && held_back_for(kMostlyHeldBack)) {
    // Down to a depth that has not proved too little; memory that others wait for is worth more.
    const std::size_t least = seen.is_memory_wanted ? least_ : settled_least_;
    if (capacity_ > least) capacity_ = std::max(capacity_ - (capacity_ + 3) / 4, least);
  }
  return capacity_;
}

}  // namespace melflow
