#include "pipeline/queue_depth.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipeline/graph_node.h"
#include "pipeline/task_graph.h"

namespace melflow {
namespace {

// Shares of the time between two reviews, of all of a node's concurrency.
//
// The consumer had nothing to do, and the producer had no place: at different moments, so a deeper
// queue would have let the one work ahead for the other. Less than this is the unrest of a machine
// that does other things, too.
constexpr double kBothWaited = 1.0 / 16;
// The consumer never waits and the producer mostly does: the queue is full all the time, and what
// is at its end is only older and colder.
constexpr double kNeverStarved = 1.0 / 256;
constexpr double kMostlyHeldBack = 1.0 / 2;

// Of the workers' time; the graph itself takes some.
constexpr double kIdle = 1.0 / 8;

// Items between two reviews: a queue evens out what changes within a few of its lengths.
std::size_t review_after(std::size_t capacity) { return std::max<std::size_t>(64, 4 * capacity); }

}  // namespace

std::size_t QueueDepth::start_level(const PlanNode& plan) {
  return static_cast<std::size_t>(std::ceil(plan.start_at * plan.queue));
}

QueueDepth::QueueDepth(TaskGraph& graph, const PlanNode& plan, Time now)
    : graph_(graph),
      adapts_(plan.has_auto_queue()),
      least_(static_cast<std::size_t>(plan.least_queue)),
      greatest_(static_cast<std::size_t>(plan.greatest_queue)),
      capacity_(static_cast<std::size_t>(plan.queue)),
      greatest_capacity_(static_cast<std::size_t>(plan.queue)),
      settled_least_(least_),
      since_(now),
      asked_(now) {}

void QueueDepth::review(GraphNode& node, GraphNode& up, std::size_t branch) {
  if (!adapts_) return;
  const tbb::spin_mutex::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const double span = std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  const NodePlaces::Snapshot here = node.places().snapshot(now);
  const double starved_in_all = here.time.waiting_input;
  const double held_back_in_all = up.places().snapshot(now).time.blocked_output;
  const double starved = starved_in_all - std::exchange(starved_, starved_in_all);
  const double held_back = held_back_in_all - std::exchange(held_back_, held_back_in_all);
  const std::size_t full = node.places().review(review_after(capacity_));
  const auto starved_for = [&](double share) {
    return starved > share * span * node.plan().concurrency;
  };
  // The producer may have waited for another branch's queue, or for memory.
  const auto held_back_for = [&](double share) {
    return held_back > share * span * up.plan().concurrency &&
           static_cast<double>(full) > share * static_cast<double>(review_after(capacity_));
  };
  if (!here.is_open) return;
  std::size_t next = capacity_;
  if (starved_for(kBothWaited) && held_back_for(kBothWaited))
    next = deepened(now);
  else if (!starved_for(kNeverStarved) && held_back_for(kMostlyHeldBack))
    next = shortened();
  if (next == capacity_) return;
  capacity_ = next;
  greatest_capacity_ = std::max<std::size_t>(greatest_capacity_, next);
  up.resize(branch, next);
}

// Since a queue was to be deepened the last time. Where every worker has something to do, a place
// more would only change what.
bool QueueDepth::workers_were_idle(Time now) {
  double busy = 0;
  for (const auto& n : graph_.nodes())
    if (n->is_on_workers()) busy += n->places().snapshot(now).time.busy;
  const double span = std::chrono::duration<double>(now - std::exchange(asked_, now)).count();
  return busy - std::exchange(workers_busy_, busy) < (1 - kIdle) * span * graph_.plan().workers;
}

// Every place may hold an item and its share of the budget, which others need as well.
std::size_t QueueDepth::deepened(Time now) {
  if (!workers_were_idle(now)) return capacity_;
  const MemoryBudget& budget = *graph_.context().budget;
  if (graph_.gate().is_waiting() || budget.used() > budget.capacity() / 2) return capacity_;
  settled_least_ = std::min(capacity_ + 1, greatest_);
  return std::min(2 * capacity_, greatest_);
}

// Down to a depth that has not proved too little; memory that others wait for is worth more than
// that.
std::size_t QueueDepth::shortened() const {
  const std::size_t least = graph_.gate().is_waiting() ? least_ : settled_least_;
  const std::size_t now = capacity_;
  return now > least ? std::max(now - (now + 3) / 4, least) : now;
}

}  // namespace melflow
