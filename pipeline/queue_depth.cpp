#include "pipeline/queue_depth.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipeline/graph_node.h"
#include "pipeline/task_graph.h"

namespace melflow {
namespace {

// Items between two reviews: a queue evens out what changes within a few of its lengths.
std::size_t review_after(std::size_t capacity) { return std::max<std::size_t>(64, 4 * capacity); }

}  // namespace

std::size_t QueueDepth::start_level(const PlanNode& plan) {
  return static_cast<std::size_t>(std::ceil(plan.start_at * plan.queue));
}

QueueDepth::QueueDepth(TaskGraph& graph, const PlanNode& plan, Time now)
    : graph_(graph),
      adapts_(plan.has_auto_queue()),
      capacity_(static_cast<std::size_t>(plan.queue)),
      greatest_capacity_(static_cast<std::size_t>(plan.queue)),
      rule_(static_cast<std::size_t>(plan.least_queue), static_cast<std::size_t>(plan.queue),
            static_cast<std::size_t>(plan.greatest_queue)),
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
  if (!here.is_open) return;
  const MemoryBudget& budget = *graph_.context().budget;
  const DepthRule::Seen seen{
      .starved = starved / (span * node.plan().concurrency),
      .held_back = held_back / (span * up.plan().concurrency),
      .full = static_cast<double>(full) / static_cast<double>(review_after(capacity_)),
      .is_memory_wanted = graph_.gate().is_waiting(),
      .is_memory_half_used = budget.used() > budget.capacity() / 2};
  const std::size_t next = rule_.next(seen, [this, now] { return workers_busy(now); });
  if (next == capacity_) return;
  capacity_ = next;
  greatest_capacity_ = std::max<std::size_t>(greatest_capacity_, next);
  up.resize(branch, next);
}

// Since a queue was to be deepened the last time, a share.
double QueueDepth::workers_busy(Time now) {
  double busy = 0;
  for (const auto& n : graph_.nodes())
    if (n->is_on_workers()) busy += n->places().snapshot(now).time.busy;
  const double span = std::chrono::duration<double>(now - std::exchange(asked_, now)).count();
  return (busy - std::exchange(workers_busy_, busy)) / (span * graph_.plan().workers);
}

}  // namespace melflow
