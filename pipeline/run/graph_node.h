// One node of the graph: a node of oneTBB that runs its stage, and the queue before it.
//
//   the node before it ──► run                      (edges of oneTBB, one for each branch)
//            │              ▲
//            └─► NodeQueue ─┘
//
// `run` is a multifunction_node without a bound; for a stage with threads or an engine of its own
// it is an async_node. Work that may begin as it is sent goes over the edge; other work waits in
// NodeQueue (node_queue.h), and the call that frees a token for it puts it into `run`. So oneTBB
// holds only work that may begin, and nothing is ever rejected.
//
// Only NodeQueue has a lock, and no two of them are ever held at once. Work is sent in this order:
// it arrives in the next node's queue, then this node's visit ends, so that work is never counted
// by neither and the next node does not end early.
#pragma once

#include <tbb/flow_graph.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"
#include "pipeline/report/visit_log.h"
#include "pipeline/run/node_queue.h"
#include "pipeline/run/stage_executor.h"
#include "pipeline/stage/paired_inputs.h"

namespace melflow {

class AsyncDriver;
class TaskGraph;

/// Threads: join(), start_threads() and join_threads() from the first thread of the run; open(),
/// flush(), release_tokens() and release_parked() from it while no task runs; everything else from
/// any task, several at once.
/// Lifetime: as its TaskGraph; `plan` outlives it.
/// Errors: an error of an item ends in its Stream, one of the run in TaskGraph::abort(), which then
/// drops what is left.
class GraphNode {
 public:
  using Clock = NodeQueue::Clock;
  using Run = tbb::flow::multifunction_node<Work*, std::tuple<Work*>>;
  using Async = tbb::flow::async_node<Work*, Work*>;

  /// The name of the oneTBB class, for Joint::leads_to.
  static const char* class_name(const Run&) { return "multifunction_node"; }
  static const char* class_name(const Async&) { return "async_node"; }

  GraphNode(TaskGraph& graph, int id, PlanNode& plan);
  ~GraphNode();
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;

  /// Makes the edges to `down`, the nodes that take its output.
  void join(const std::vector<GraphNode*>& down);
  /// Starts the threads that the stage needs; throws RunError when the system allows none.
  void start_threads();
  void join_threads();

  [[nodiscard]] const std::string& name() const { return plan_.name; }
  [[nodiscard]] bool is_source() const { return plan_.inputs.empty(); }
  /// Whether its stage runs on the workers.
  [[nodiscard]] bool is_on_workers() const { return run_ != nullptr; }
  [[nodiscard]] const PlanNode& plan() const { return plan_; }
  [[nodiscard]] const StageTraits& traits() const { return plan_.stage->traits(); }
  [[nodiscard]] StageExecutor& executor() { return executor_; }

  // ---- work that may begin: on a worker, or on a thread of the stage

  /// Begins, processes and finishes work.
  void run(Work* work);
  /// The steps of run(), for an engine.
  void begin(Work& work);
  void finish(Work* work, const StageExecutor::Outcome& outcome);
  /// Releases the graph, which waits for work that a thread of the stage has taken.
  void release_wait();

  // ---- work that was in the stage before

  void resume(Work* work);
  void resume_oldest();
  /// Begins the source's work.
  void start_source();

  // ---- from the memory gate

  /// Goes on with `work`, which has got its memory.
  void granted(Work* work);
  /// Whether no further output of the node for `work` counts.
  [[nodiscard]] bool is_over(const Work& work) const;
  /// Ends `work`, which gets no memory because the run stops or it is over.
  void cut_off(Work* work);

  // ---- the beginning and the end

  /// Notes that no more items come; ends the node, and those behind it, once it has nothing left to
  /// do. False: that was known already.
  bool end_input();
  /// Opens a queue that fills. False: there is nothing in it, or it is open.
  bool open();
  /// Sends on an incomplete batch. False: there is none.
  bool flush();
  /// Lets others have the tokens of blocks that wait for an earlier block: the oldest file, which
  /// gets memory first, may be among these others. False: there are no such blocks.
  bool release_tokens();
  /// Releases memory that is charged to rows that wait for others. False: there are none.
  [[nodiscard]] bool release_parked() const {
    return plan_.faces.paired != nullptr && plan_.faces.paired->release_parked();
  }
  [[nodiscard]] bool is_ended() const { return queue_.is_ended(); }
  /// Ends work that gets no further; its files are not done.
  static void drop(Work* work);

  [[nodiscard]] const NodeQueue& queue() const { return queue_; }
  void fill(RunReport& report, Clock::time_point now) const;

 private:
  struct Body;
  struct AsyncBody;

  // Work for one of the nodes behind this one.
  struct Parcel {
    std::size_t branch = 0;
    std::unique_ptr<Work> work;  // null from the time when another node has it
  };
  // All that is sent at once; nearly always it is one parcel, without an allocation.
  struct Parcels {
    Parcel first;
    std::unique_ptr<std::vector<Parcel>> others;  // null: none
    template <class F>
    void each(F&& f) {
      if (first.work) f(first);
      if (others)
        for (Parcel& p : *others) f(p);
    }
  };

  [[nodiscard]] bool takes(std::size_t branch, const Item& item) const;
  Parcels make_parcels(std::unique_ptr<Work> work);
  std::vector<Parcel> copies(Work& work) const;
  void arrive_downstream(Parcels& parcels, std::vector<std::size_t>& waiting,
                         Clock::time_point now);
  void send(Parcels& parcels);
  static void note_holder(const Work& work, int node);
  void start(StartList& work);
  void free_token(Clock::time_point now, const Work::Sent& sent);
  void admit(std::unique_ptr<Work> work);
  void make();
  void leave_by(int source, Stream& stream) const;
  static void begin_visit(Work& work, Clock::time_point now);
  [[nodiscard]] Visit visit_of(const Work& work, const NodeQueue::Finish& f) const;
  [[nodiscard]] StageMeter::Visit meter_visit(const Work& work, Clock::time_point now,
                                              std::size_t calls) const;
  void check_bound(const Item& item);
  [[nodiscard]] bool exceeds_bound() const;
  [[nodiscard]] bool is_behind_excess() const;
  [[nodiscard]] bool holds() const;  // asked while nothing is in the stage
  void try_end();
  void input_ended();
  void send_flush();
  std::unique_ptr<Work> new_work();

  TaskGraph& graph_;
  const int id_;
  PlanNode& plan_;
  // Whether a block may wait here for an earlier one that waits for memory in a node before.
  const bool waits_for_memory_;
  // Whether its output is not checked against its bound: rows of several blocks under one block's
  // number, which a stage that pairs gives when an input is late; or memory of a device.
  const bool is_unbound_;
  std::vector<GraphNode*> ups_, down_;
  std::atomic<std::size_t> ups_going_{0};
  // If it has named outputs and several nodes behind it: the outputs that each of these takes, as
  // Item::output has them.
  std::vector<std::vector<int>> outputs_;

  // oneTBB's nodes: one of the first two is set; its own output port serves the first branch.
  std::unique_ptr<Run> run_;
  std::unique_ptr<Async> async_;
  std::vector<std::unique_ptr<tbb::flow::broadcast_node<Work*>>> ports_;

  std::unique_ptr<AsyncDriver> driver_;
  NodeQueue queue_;
  StageExecutor executor_;
  // The largest excess of its output over its declared bound.
  struct Excess {
    std::size_t given = 0, declared = 0;  // [bytes]
    std::size_t index = 0;                // of the source item
  };
  std::mutex excess_mutex_;
  Excess excess_;
  std::unique_ptr<Work> cursor_;  // of the source: begins whenever the next task should be made
};

}  // namespace melflow
