#include "pipeline/run/task_graph.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/tsan.h"
#include "pipeline/plan/plan_memory.h"

namespace melflow {

TaskGraph::TaskGraph(Plan& plan, RunContext& run, const Reach& reach, RunObserver* observer,
                     VisitLog* visits)
    : plan_(plan),
      run_(run),
      reach_(reach),
      observer_(observer),
      visits_(visits),
      began_(Clock::now()),
      core_wait_before_(core_wait_seconds()),
      cpu_before_(process_usage().cpu_seconds()),
      arena_(tbb::task_arena::attach()),
      gate_(run, reach.size()),
      feed_(*this) {
  const std::size_t nodes = reach.size();
  std::vector<std::vector<GraphNode*>> down(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    PlanNode& p = plan_.nodes[i];
    nodes_.push_back(std::make_unique<GraphNode>(*this, static_cast<int>(i), p));
    cuts_ |= p.stage->traits().cuts;
    for (std::size_t up = 0; up < i; ++up)
      if (const std::vector<int>& to = plan_.nodes[up].to;
          std::find(to.begin(), to.end(), static_cast<int>(i)) != to.end())
        down[up].push_back(nodes_.back().get());
  }
  for (std::size_t i = nodes; i-- > 0;) nodes_[i]->join(down[i]);
  try {
    for (auto& n : nodes_) n->start_threads();
  } catch (...) {
    settle();
    throw;
  }
}

TaskGraph::~TaskGraph() { settle(); }

// Before anything is destroyed: threads send items to other nodes, and edges have tasks.
void TaskGraph::settle() {
  for (auto& n : nodes_) n->join_threads();
  graph_.wait_for_all();
}

// If memory for the graph itself runs out, work under way may get lost, so its end is never
// reported: then the run is over when nothing moves.
void TaskGraph::run() {
  nodes_.front()->start_source();
  for (bool goes_on = true; goes_on;) {
    try {
      // Memory may come back on any thread, which then starts work. What was started by now is
      // waited for; what is started later is seen by told().
      const std::uint64_t told = gate_.told();
      if (gate_.is_telling()) {
        std::this_thread::yield();
        continue;
      }
      graph_.wait_for_all();
      for (auto& n : nodes_) tsan::acquire(n.get());
      goes_on = set_going(told);
    } catch (...) {
      goes_on = error() == nullptr;
      abort(std::current_exception());
    }
  }
}

void TaskGraph::memory_freed() noexcept {
  try {
    gate_.memory_freed();
  } catch (...) {
    abort(std::current_exception());
  }
}

// When nothing moves: starts what can still run; false at the end. The steps go from what costs
// nothing to what changes the course of the run, and one that moved something is the last of its
// turn, since what it began may make the others needless:
//   1. Nodes that wait for their queue to fill (`start_at`) begin with what they have.
//   2. Incomplete batches are sent on, and memory is offered again: files may have failed since.
//      Both before 3, since the rows of a batch give memory back when they are written.
//   3. Tokens of blocks that wait for an earlier block of their file, and reservations of rows that
//      wait for those of another input, are given up: the oldest file gets a place and memory.
//   4. Sinks drop what waits for items that are lost; this closes files, so it comes after all that
//      could still complete them.
//   5. Waits for memory that a thread outside of the graph holds, such as a sink's own.
// Whoever is told of memory meanwhile (told()) starts work on another thread: that counts as moved.
bool TaskGraph::set_going(std::uint64_t told) {
  if (gate_.told() != told) return true;
  const auto all_ended = [this] {
    for (const auto& n : nodes_)
      if (!n->is_ended()) return false;
    return true;
  };
  if (all_ended()) return false;
  bool moved = false;
  for (auto& n : nodes_) moved |= n->open();
  if (moved) return true;
  for (auto& n : nodes_) moved |= n->flush();
  if (moved || gate_.pump()) return true;
  for (auto& n : nodes_) moved |= n->release_tokens();
  for (auto& n : nodes_) moved |= n->release_parked();
  if (moved) return true;
  if (gate_.told() != told) return true;
  if (all_ended() || error()) return false;
  for (auto& n : nodes_)
    if (HoldsItems* holds = n->plan().faces.holds) holds->drop_lost();
  if (gate_.wait(told)) return true;
  std::string state;
  const Clock::time_point now = Clock::now();
  std::vector<double> held(nodes_.size());
  if (run_.budget != nullptr) run_.budget->add_holders(held);
  for (auto& n : nodes_) {
    const NodeQueue::Snapshot c = n->queue().snapshot(now);
    state += fmt::format(
        " {}: {} waiting, {} running, {} to come again, {} places free, {:.0f} bytes held;",
        n->name(), c.waiting, c.running, c.announced, c.free,
        held[static_cast<std::size_t>(&n - nodes_.data())]);
  }
  abort(std::make_exception_ptr(RunError("no stage can go on (a bug in melflow):" + state)));
  return true;
}

// A type with a name, for tests/support/tsan.supp.
struct TaskGraph::Resume {
  TaskGraph* graph;
  GraphNode* node;
  Work* work;
  void operator()() const {
    tsan::acquire(work);
    try {
      node->resume(work);
    } catch (...) {
      graph->abort(std::current_exception());
    }
    graph->graph_.release_wait();
  }
};

void TaskGraph::resume(GraphNode& node, Work* work) {
  if (!node.is_on_workers()) return node.resume(work);
  graph_.reserve_wait();
  tsan::release(work);
  try {
    arena_.enqueue(Resume{this, &node, work});
  } catch (...) {
    graph_.release_wait();
    throw;
  }
}

void TaskGraph::stop() {
  is_stopping_ = true;
  gate_.close();
}

void TaskGraph::abort(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  is_aborting_ = true;
  stop();
  try {
    for (auto& n : nodes_) n->open();
  } catch (...) {  // no memory: set_going() opens them
  }
}

std::exception_ptr TaskGraph::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void TaskGraph::fill(RunReport& report) const {
  const Clock::time_point now = Clock::now();
  report.graph_began = began_;
  report.graph_seconds = std::chrono::duration<double>(now - began_).count();
  for (const auto& n : nodes_) n->fill(report, now);
  if (std::string text = feed_.not_kept(); !text.empty() && too_many_files(plan_).empty())
    report.warnings.push_back(std::move(text));
  report.memory_wait_seconds = gate_.wait_seconds();
  const std::vector<double> holders = gate_.holders();
  for (std::size_t i = 0; i < holders.size(); ++i)
    report.memory_holders.emplace_back(nodes_[i]->name(), holders[i]);
  report.latency = service_report(run_.ledger.latencies());
  report.bytes_read = bytes_read();
  report.memory_wanted = memory_wanted();
  report.core_wait_seconds = std::max(0.0, core_wait_seconds() - core_wait_before_);
  report.graph_cpu_seconds = process_usage().cpu_seconds() - cpu_before_;
  for (const Ledger::Time& closed : run_.ledger.closings())
    report.last_closings.push_back(std::chrono::duration<double>(closed - began_).count());
  const std::lock_guard lock(mutex_);
  report.joints = joints_;
}

// Twice the memory in the stages, since as much waits in front of them, plus the reserve for the
// oldest file.
std::size_t TaskGraph::memory_wanted() const {
  const std::size_t mean = run_.budget == nullptr ? 0 : run_.budget->mean();
  if (mean == 0) return 0;
  std::vector<std::size_t> items(nodes_.size(), 1);  // of the source, in one item of each node
  std::size_t wanted = 0;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const PlanNode& n = plan_.nodes[i];
    items[i] = 0;
    for (const PlanInput& in : n.inputs)
      items[i] = std::max(items[i], items[static_cast<std::size_t>(in.node)]);
    if (n.faces.combine != nullptr) items[i] *= n.faces.combine->most_items();
    wanted += static_cast<std::size_t>(n.concurrency) * items[i];
  }
  return 2 * wanted * mean + plan_.least_memory + plan_.largest_block;
}

std::size_t TaskGraph::rows_taken() const {
  std::size_t rows = 0;
  for (const auto& n : nodes_)
    if (n->traits().kind == StageKind::sink) rows += n->queue().taken_in().rows;
  return rows;
}

std::size_t TaskGraph::bytes_read() const {
  std::size_t bytes = 0;
  for (const auto& n : nodes_)
    if (n->plan().from() == 0) bytes += n->queue().given().bytes;
  return bytes;
}

}  // namespace melflow
