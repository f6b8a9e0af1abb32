// The scheduler's clock: where the time of every stage and queue went.
#include <algorithm>

#include "pipeline/scheduler_parts.h"

namespace melflow {
namespace {
double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}
}  // namespace

// Called before anything changes that the states of a node or of the one before it depend on.
void Scheduler::touch(Node& n) const {
  tick(n);
  if (n.up != nullptr) tick(*n.up);
}

void Scheduler::tick(Node& n) const {
  const double dt = seconds(now_ - n.since);
  if (dt <= 0) return;
  n.since = now_;
  const int rest = n.concurrency - n.busy();
  const std::size_t held_up = n.parked.size() + (n.has_place_behind() ? 0 : n.queue.size());
  const int blocked = static_cast<int>(std::min(static_cast<std::size_t>(rest), held_up));
  n.time.busy += n.running * dt;
  n.time.waiting_core += static_cast<double>(n.ready.size()) * dt;
  n.time.blocked_output += blocked * dt;
  const bool over = n.ended || (no_more_input(n) && n.queue.empty() && n.promised == 0);
  (over ? n.time.idle_after_end : n.time.waiting_input) += (rest - blocked) * dt;
  if (!n.ended) {
    n.depth_seconds += static_cast<double>(n.queue.size()) * dt;
    n.edge_seconds += dt;
  }
}

void Scheduler::note_memory_wait(bool waiting) {
  if (memory_waiting_.load() == waiting) return;
  if (waiting)
    memory_since_ = now_;
  else
    memory_wait_ += seconds(now_ - memory_since_);
  memory_waiting_.store(waiting);
}

void Scheduler::fill(RunReport& report) const {
  const std::lock_guard lock(mutex_);
  now_ = Clock::now();
  report.graph_seconds = seconds(now_ - began_);
  for (const auto& n : nodes_) {
    tick(*n);
    StageReport s = n->report;
    s.time = n->time;
    if (n->threads && n->threads->count() < n->concurrency)
      report.warnings.push_back(
          few_threads_text(n->threads->count(), n->concurrency, "threads of " + s.name));
    report.stages.push_back(std::move(s));
    if (n->up == nullptr) continue;
    EdgeReport e;
    e.from = n->up->report.name;
    e.to = n->report.name;
    e.capacity = static_cast<int>(n->capacity);
    e.greatest_capacity = static_cast<int>(n->greatest_capacity);
    e.adapts = n->adapts;
    e.max_depth = n->max_depth;
    e.mean_depth = n->edge_seconds > 0 ? n->depth_seconds / n->edge_seconds : 0;
    e.start_depth = n->start_depth;
    e.start_wait_seconds = n->start_wait_seconds;
    report.edges.push_back(std::move(e));
  }
  report.memory_wait_seconds = memory_wait_;
}

std::size_t Scheduler::rows_taken() const {
  const std::lock_guard lock(mutex_);
  std::size_t rows = 0;
  for (const auto& n : nodes_)
    if (n->traits.kind == StageKind::sink) rows += n->report.rows_in;
  return rows;
}

std::size_t Scheduler::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size() > 1 ? nodes_[1]->report.bytes_out : 0;
}

}  // namespace melflow
