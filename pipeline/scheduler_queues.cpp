// How deep an auto queue is, and when a node that waits for its queue to fill begins. Everything
// here runs with the scheduler's mutex held. docs/decisions/0010-queue-depth.md has the reasons and
// the figures.
#include <algorithm>
#include <cmath>
#include <utility>

#include "pipeline/scheduler_parts.h"

namespace melflow {
namespace {

// Shares of the time between two reviews, of all slots of a node.
//
// The consumer had nothing to do, and the producer had no place: at different moments, so a deeper
// queue would have let the one work ahead for the other. Less than this is the unrest of a machine
// that does other things, too.
constexpr double kBothWaited = 1.0 / 16;
// The consumer never waits and the producer mostly does: the queue is full all the time, and what
// is at its end is only older and colder.
constexpr double kNeverStarved = 1.0 / 256;
constexpr double kMostlyHeldBack = 1.0 / 2;

// Of the workers' time; the scheduler itself takes some.
constexpr double kIdle = 1.0 / 8;

// Items between two reviews: a queue evens out what changes within a few of its lengths.
std::size_t review_after(std::size_t capacity) { return std::max<std::size_t>(64, 4 * capacity); }

}  // namespace

void Scheduler::open_queue(Node& n, const PlanNode& plan) {
  n.capacity = n.greatest_capacity = static_cast<std::size_t>(plan.queue);
  // One item is there when the node is asked to begin, so less than two is no wait.
  const auto level = static_cast<std::size_t>(std::ceil(plan.start_at * plan.queue));
  n.start_level = level > 1 ? level : 0;
  n.adapts = plan.has_auto_queue();
  if (!n.adapts) return;
  n.depth.least = n.depth.settled_least = static_cast<std::size_t>(plan.least_queue);
  n.depth.greatest = static_cast<std::size_t>(plan.greatest_queue);
  n.depth.since = n.depth.asked = began_;
  n.until_review = 1;  // no queue could have shortened the wait for the first item
}

void Scheduler::review_queue(Node& n) {
  AutoDepth& d = n.depth;
  const double span = std::chrono::duration<double>(now_ - d.since).count();
  const double starved = std::exchange(d.starved, n.time.waiting_input);
  const double held_back = std::exchange(d.held_back, n.up->time.blocked_output);
  const auto starved_for = [&](double share) {
    return n.time.waiting_input - starved > share * span * n.concurrency;
  };
  // The producer may have waited for another branch's queue, or for memory.
  const auto held_back_for = [&](double share, std::size_t full) {
    return n.up->time.blocked_output - held_back > share * span * n.up->concurrency &&
           static_cast<double>(full) > share * static_cast<double>(review_after(n.capacity));
  };
  const std::size_t full = std::exchange(n.filled, 0);
  d.since = now_;
  if (n.start_level == 0) {
    if (starved_for(kBothWaited) && held_back_for(kBothWaited, full))
      deepen(n);
    else if (!starved_for(kNeverStarved) && held_back_for(kMostlyHeldBack, full))
      shorten(n);
  }
  n.until_review = review_after(n.capacity);
}

// Since a queue was to be deepened the last time. Where every worker has something to do, a place
// more would only change what.
bool Scheduler::workers_were_idle(AutoDepth& d) const {
  double busy = 0;
  for (const auto& n : nodes_) {
    if (!n->has_workers()) continue;
    tick(*n);
    busy += n->time.busy;
  }
  const double span = std::chrono::duration<double>(now_ - d.asked).count();
  d.asked = now_;
  return busy - std::exchange(d.workers_busy, busy) < (1 - kIdle) * span * plan_.workers;
}

// Every place may hold an item and its share of the budget, which others need as well.
void Scheduler::deepen(Node& n) {
  if (!workers_were_idle(n.depth)) return;
  if (memory_waiting_.load() || run_.budget->used() > run_.budget->capacity() / 2) return;
  n.depth.settled_least = std::min(n.capacity + 1, n.depth.greatest);
  n.capacity = std::min(2 * n.capacity, n.depth.greatest);
  n.greatest_capacity = std::max(n.greatest_capacity, n.capacity);
  wake(*n.up);
}

// Down to a depth that has not proved too little; memory that others wait for is worth more than
// that.
void Scheduler::shorten(Node& n) {
  const std::size_t least = memory_waiting_.load() ? n.depth.least : n.depth.settled_least;
  if (n.capacity > least) n.capacity = std::max(n.capacity - (n.capacity + 3) / 4, least);
}

// Its queue has the items that the node waits for, or there is nothing to wait for.
bool Scheduler::may_begin(Node& n) {
  if (n.queue.empty()) return false;
  if (!n.first_came) n.first_came = now_;
  if (n.queue.size() >= n.start_level || no_more_input(n)) begin_node(n);
  return n.start_level == 0;
}

void Scheduler::begin_node(Node& n) {
  n.start_level = 0;
  n.start_depth = n.queue.size();
  n.start_wait_seconds = std::chrono::duration<double>(now_ - n.first_came.value_or(now_)).count();
}

bool Scheduler::begin_waiting() {
  bool any = false;
  for (auto& n : nodes_) {
    if (n->start_level == 0 || n->queue.empty()) continue;
    begin_node(*n);
    wake(*n);
    any = true;
  }
  return any;
}

}  // namespace melflow
