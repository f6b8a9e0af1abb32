// GraphNode's accounts: the cost of visits of its stage, and its part of the report.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/threads.h"
#include "pipeline/run/async_driver.h"
#include "pipeline/run/graph_node.h"
#include "pipeline/run/task_graph.h"

namespace melflow {

namespace {

ConcurrencyOption concurrency_option(const PlanNode& plan) {
  const Value* written = plan.options.find("concurrency");
  const bool is_auto = written == nullptr || written->is_null() || written->text() == "auto";
  const int most = plan.stage->traits().max_concurrency;
  return {.is_settable = plan.name == plan.written,
          .follows_workers = is_auto && most == 0 && plan.resources.default_concurrency == 0,
          .most = most};
}

}  // namespace

void GraphNode::begin_visit(Work& work, Clock::time_point now) {
  work.timing = {
      .began = now, .began_at = work.progress.at, .files = work.items.size() - work.progress.at};
  if (work.timing.files != 1 || !work.items.back().origins) return;
  const Stream* last = nullptr;  // of those in a batch
  work.timing.files = 0;
  for (const Origin& o : *work.items.back().origins)
    work.timing.files += std::exchange(last, o.stream.get()) != o.stream.get() ? 1 : 0;
}

StageMeter::Visit GraphNode::meter_visit(const Work& work, Clock::time_point now,
                                         std::size_t calls) const {
  return {.took = (now - work.timing.began).count(),
          .cpu = work.timing.cpu,
          .calls = calls,
          .index = work.index,
          .files = work.timing.files,
          .is_of_files = !is_source() && !work.progress.is_flush};
}

// Returns the visit so far, with `ended` not set.
Visit GraphNode::visit_of(const Work& work, const NodeQueue::Finish& f) const {
  return {.began = work.timing.began,
          .ended = {},
          .node = id_,
          .files = static_cast<std::uint32_t>(work.progress.is_flush ? 0 : work.timing.files),
          .index = work.index,
          .bytes_in = f.in.bytes,
          .bytes_out = f.out.bytes,
          .rows_in = f.in.rows,
          .rows_out = f.out.rows};
}

// The memory was reserved by the bounds that stages declare, so a larger output is recorded.
void GraphNode::check_bound(const Item& item) {
  if (is_unbound_) return;
  std::size_t declared = 0;
  for (const Origin& o : *item.origins) {
    const std::size_t more = o.stream->bound(id_);
    if (more >= item.bytes - declared) return;
    declared += more;
  }
  const std::size_t index = item.origins->front().stream->index();
  const std::lock_guard lock(excess_mutex_);
  const std::size_t most = excess_.given - excess_.declared, here = item.bytes - declared;
  if (here > most || (here == most && index < excess_.index))
    excess_ = {item.bytes, declared, index};
}

// An excess may result from one in an earlier node, which is reported alone. Called after the run.
bool GraphNode::exceeds_bound() const {
  return excess_.given > 0 || is_unbound_ || is_behind_excess();
}

bool GraphNode::is_behind_excess() const {
  return std::any_of(ups_.begin(), ups_.end(),
                     [](const GraphNode* up) { return up->exceeds_bound(); });
}

void GraphNode::fill(RunReport& report, Clock::time_point now) const {
  const NodeQueue::Snapshot c = queue_.snapshot(now);
  const StageMeter meter = queue_.meter();
  StageReport s;
  s.name = name();
  s.stage = plan_.info->name;
  s.concurrency = plan_.concurrency;
  s.option = concurrency_option(plan_);
  s.peak_concurrency = c.peak_concurrency;
  s.items_in = c.in.items;
  s.bytes_in = c.in.bytes;
  s.rows_in = c.in.rows;
  s.items_out = c.out.items;
  s.bytes_out = c.out.bytes;
  s.rows_out = c.out.rows;
  s.files_in = c.in.files;
  s.on_workers = is_on_workers();
  s.time = c.time;
  s.cpu_seconds = driver_ ? driver_->cpu_seconds() : meter.processor_share() * c.time.busy;
  s.service = meter.service();
  s.slowest = meter.slowest();
  if (traits().kind == StageKind::sink && c.first_done) {
    const double first = std::chrono::duration<double>(*c.first_done - graph_.began()).count();
    double& earliest = report.first_row_seconds;
    earliest = earliest == 0 ? first : std::min(earliest, first);
  }
  if (driver_ && driver_->count() > 0 && driver_->count() < plan_.concurrency)
    report.warnings.push_back(
        few_threads_text(driver_->count(), plan_.concurrency, "threads of " + name()));
  if (excess_.given > 0 && !is_behind_excess())
    report.warnings.push_back(fmt::format(
        "{}: gave {} bytes for {} where it had declared {} at most (output_bound of a stage, "
        "growth of a lambda): the run may have taken more memory than memory.host",
        name(), excess_.given, graph_.context().source.name(excess_.index), excess_.declared));
  report.stages.push_back(std::move(s));
  for (const GraphNode* up : ups_) {
    EdgeReport e;
    e.from = up->name();
    e.to = name();
    e.capacity = plan_.queue;
    e.max_depth = c.max_depth;
    e.mean_depth = c.mean_depth;
    e.start_depth = c.start_depth;
    e.start_wait_seconds = c.start_wait_seconds;
    report.edges.push_back(std::move(e));
  }
}

}  // namespace melflow
