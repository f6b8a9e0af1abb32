// A plan as a oneTBB flow graph: each node of the plan is a node that runs its stage, with a queue
// before it (graph_node.h), joined by make_edge; beside them only the gate of the memory budget.
// docs/decisions/0001-graph.md has the reasons.
//
// The graph never blocks: an admitted item has memory for one block, so it needs only tokens in
// queues, and these become free from the sinks upwards, because a sink never refuses an item. Only
// the further blocks of a long item need more memory; an item that waits for memory has no token
// and does not count as concurrency, so no other item waits for it, and the oldest item has a
// reserve of its own. A node that waits for its queue to fill (`start_at`) begins at the latest
// when the queue is full, when no more items can come, or when nothing else moves. Incomplete
// batches are sent on when nothing else moves.
#pragma once

#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/report/observer.h"
#include "pipeline/report/visit_log.h"
#include "pipeline/run/graph_node.h"
#include "pipeline/run/memory_gate.h"
#include "pipeline/run/source_feed.h"
#include "pipeline/stage/reach.h"

namespace melflow {

/// Threads: constructed, run and destroyed by the first thread of the run; stop(), abort(),
/// memory_freed() and everything const from any thread while it exists; the part "for its nodes"
/// from tasks of the graph.
/// Lifetime: longer than every Work, and as long as the callback of the budget is set.
/// Locks, outermost first: Runner's graph_mutex_, MemoryGate, then MemoryBudget or Stream. Leaves,
/// under which no other lock is taken: NodeQueue, Ledger, BufferPool, mutex_ here. Callbacks
/// (MemoryBudget::on_release, listeners of the ledger, granted() and cut_off() of a node) are made
/// under none of them.
/// Errors: whatever a task throws goes to abort(); run() itself throws nothing.
class TaskGraph {
 public:
  /// Makes a graph of the nodes of the plan that are in `reach`, which outlives all items. It
  /// belongs to the task arena in which it is made. `observer` and `visits` may be null.
  TaskGraph(Plan& plan, RunContext& run, const Reach& reach, RunObserver* observer,
            VisitLog* visits);
  ~TaskGraph();

  /// Runs until every node has ended; the calling thread is one of the workers.
  void run();
  /// Stops: no new items are begun, items under way are finished, long files are cut off. May be
  /// called at any time, also before run(). What it ends is closed by threads of the run.
  void stop();
  /// Ends the run with an error and drops all items; the first error is kept.
  void abort(std::exception_ptr error);
  /// Notes that memory came back, so that the source or a long file may go on.
  void memory_freed() noexcept;

  [[nodiscard]] std::exception_ptr error() const;
  /// Source items below this index have a stream, which closes their record in the ledger.
  [[nodiscard]] std::size_t admitted() const { return admitted_.load(); }
  void fill(RunReport& report) const;
  [[nodiscard]] std::size_t rows_taken() const;
  /// The bytes and rows given by the nodes that take what the source makes.
  [[nodiscard]] std::size_t bytes_read() const;
  [[nodiscard]] std::size_t memory_wanted() const;

  // ---- for its nodes

  [[nodiscard]] Plan& plan() { return plan_; }
  [[nodiscard]] RunContext& context() { return run_; }
  [[nodiscard]] RunObserver* observer() const { return observer_; }
  [[nodiscard]] VisitLog* visits() const { return visits_; }
  [[nodiscard]] MemoryGate& gate() { return gate_; }
  [[nodiscard]] tbb::flow::graph& flow() { return graph_; }
  [[nodiscard]] const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  [[nodiscard]] GraphNode::Clock::time_point began() const { return began_; }
  [[nodiscard]] const Reach& reach() const { return reach_; }
  /// Whether one of its nodes cuts items into parts.
  [[nodiscard]] bool cuts() const { return cuts_; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_.load(); }
  [[nodiscard]] bool is_aborting() const { return is_aborting_.load(); }
  [[nodiscard]] SourceFeed& feed() { return feed_; }
  /// Source items below `end` have a stream.
  void admitted(std::size_t end) { admitted_.store(end); }
  /// Resumes `work`, which has its memory now. The thread that gave memory back may be of any kind,
  /// so a worker does it, after the tasks that it has.
  void resume(GraphNode& node, Work* work);
  /// Makes an edge and records it for the report; the program's only call of make_edge.
  template <class From, class To>
  void join(From& from, To& to, std::string from_name, std::string to_name) {
    const std::lock_guard lock(mutex_);
    joints_.push_back({std::move(from_name), std::move(to_name), GraphNode::class_name(to)});
    tbb::flow::make_edge(from, to);
  }

 private:
  using Clock = GraphNode::Clock;
  struct Resume;
  bool set_going(std::uint64_t told);
  void settle();

  Plan& plan_;
  RunContext& run_;
  const Reach& reach_;
  RunObserver* const observer_;
  VisitLog* const visits_;
  const Clock::time_point began_;
  const double core_wait_before_, cpu_before_;  // [s]
  tbb::task_arena arena_;
  tbb::flow::graph graph_;
  MemoryGate gate_;
  std::vector<std::unique_ptr<GraphNode>> nodes_;
  SourceFeed feed_;
  bool cuts_ = false;
  std::atomic<std::size_t> admitted_{0};
  std::atomic<bool> is_stopping_{false}, is_aborting_{false};

  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<Joint> joints_;
};

}  // namespace melflow
