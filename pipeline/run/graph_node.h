// One node of the graph, made of nodes of oneTBB:
//
//                      ┌──────────── past the queue, where it may begin at once ───────────┐
//   the node before it ┤                                                                   ├─► run
//                      └─► waiting (priority_queue_node) ──► places (limiter_node) ────────┘
//
// `run` is a multifunction_node. `places` lets as many through as NodePlaces has admitted: fewer
// than `concurrency` are in the stage then, and every queue behind it has a place for what it will
// give. So a finished item never waits for a place, and nothing is ever rejected. It is one limiter
// with the least of all of these, since one limiter cannot reserve from another; and no concurrency
// in `run`, which would let items in only to keep them in a queue of its own.
//
// A stage with threads or an engine of its own is an async_node whose queue belongs to these
// threads (own_threads.h); they take from it what is admitted, so no worker is needed for it to go
// on.
#pragma once

#include <tbb/flow_graph.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"
#include "pipeline/report/stage_meter.h"
#include "pipeline/report/visit_log.h"
#include "pipeline/run/node_places.h"
#include "pipeline/run/stage_calls.h"
#include "pipeline/run/turns.h"
#include "pipeline/stage/side_by_side.h"

namespace melflow {

class OwnThreads;
class TaskGraph;

class GraphNode {
 public:
  using Clock = NodePlaces::Clock;
  using Run = tbb::flow::multifunction_node<Message, std::tuple<Message, Message>>;
  using Async = tbb::flow::async_node<Message, Message>;
  using Limiter = tbb::flow::limiter_node<Message, int>;
  using Waiting = tbb::flow::priority_queue_node<Message, IsYounger>;

  /// The name of the oneTBB class at its beginning, for Joint::leads_to.
  static const char* class_name(const Waiting&) { return "priority_queue_node"; }
  static const char* class_name(const Limiter&) { return "limiter_node"; }
  static const char* class_name(const Run&) { return "multifunction_node"; }
  static const char* class_name(const Async&) { return "async_node"; }

  GraphNode(TaskGraph& graph, int id, PlanNode& plan);
  ~GraphNode();
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;

  /// Makes the edges between its own parts and to `down`, the nodes that take what it gives.
  void join(const std::vector<GraphNode*>& down);
  /// Starts the threads that the stage needs; throws RunError when the system allows none.
  void start_threads();
  void join_threads();

  [[nodiscard]] const std::string& name() const { return plan_.name; }
  [[nodiscard]] bool is_source() const { return plan_.inputs.empty(); }
  [[nodiscard]] bool is_last() const { return down_.empty(); }
  /// Whether its stage runs on the workers.
  [[nodiscard]] bool is_on_workers() const { return run_ != nullptr; }
  [[nodiscard]] const PlanNode& plan() const { return plan_; }
  [[nodiscard]] const StageTraits& traits() const { return plan_.stage->traits(); }
  [[nodiscard]] StageCalls& calls() { return calls_; }

  // ---- items: on a worker, or on a thread of the stage's own

  /// Begins, processes and finishes work that was admitted.
  void run(Work* work);
  /// The steps of run(), for an engine. begin(): false where the work waits for its turn, or all of
  /// its files have failed.
  [[nodiscard]] bool begin(Work* work);
  void finish(Work* work, const StageCalls::Outcome& outcome);

  /// Ends a message that gets nowhere, of which its files are not done.
  static void drop(Work* message);

  /// Called by dedicated threads of the stage when work that was admitted is done or waits
  /// elsewhere.
  void let_go();

  /// Puts work that has been in the stage back into the queue, for its next block or its turn.
  void wait_again(Work* work);
  /// Lets in one more of what lies in the queue: what stands first there.
  void offer_again() { offer(Clock::now(), Came::again); }
  /// Begins the source's work.
  void start();

  // ---- from the memory gate

  /// Goes on with `work`, which has got its memory.
  void granted(Work* work);
  /// Whether nothing counts that the node would make of what is left of it.
  [[nodiscard]] bool is_over(const Work& work) const;
  /// Ends `work`, which gets no memory because the run stops or it is over.
  void cut_off(Work* work);

  // ---- the beginning and the end

  /// A node before it has ended.
  void input_ended();
  /// Notes that no more items come; ends the node, and those behind it, once it has nothing left to
  /// do. False: that was known already.
  bool end_input();
  /// Lets in items that wait for the queue to fill. False: there are none.
  bool open();
  /// Sends on an incomplete batch. False: there is none.
  bool flush();
  /// Gives the places of items that wait for their turn to others. False: there are none.
  bool clear_queue();
  /// Lets go of memory that rows are charged to which wait for others. False: there are none.
  [[nodiscard]] bool release_parked() const {
    return plan_.faces.side_by_side != nullptr && plan_.faces.side_by_side->release_parked();
  }
  [[nodiscard]] bool is_ended() const { return places_.is_ended(); }

  // ---- places and accounts

  [[nodiscard]] NodePlaces& places() { return places_; }
  [[nodiscard]] const NodePlaces& places() const { return places_; }
  void fill(RunReport& report, Clock::time_point now) const;

 private:
  struct Body;
  struct AsyncBody;

  // A node before this one, which is its branch number `branch`.
  struct Up {
    GraphNode* node;
    std::size_t branch;
  };
  [[nodiscard]] std::size_t branch_of(const GraphNode& up) const;

  Work* own(Work* message) const;
  static void let_go_of_share(Work* message);
  void issue_turns(Work& work, std::size_t branch);
  bool address(Work& work, Clock::time_point now);
  void send(Work* work, Clock::time_point now);
  [[nodiscard]] bool takes(std::size_t branch, const Item& item) const;
  [[nodiscard]] std::vector<std::size_t> branches_of(const std::vector<Item>& items) const;
  bool address_to(const std::vector<std::size_t>& branches, bool has_turns, Clock::time_point now);
  std::vector<std::unique_ptr<Work>> by_output(std::unique_ptr<Work> work,
                                               const std::vector<std::size_t>& branches);
  void send_to(const std::vector<std::size_t>& branches, std::vector<std::unique_ptr<Work>> parts,
               bool begins, Clock::time_point now);
  void put_in_queue(Work* work);
  void go_on(Work* work);
  void offer(Clock::time_point now, Came came) { let_in(places_.offer(now, came)); }
  void let_in(int more);
  void free_place(Clock::time_point now, std::size_t branch) {
    let_in(places_.free_place(now, branch));
  }
  void leave(const std::vector<Turn>& turns);
  void admit(Work* work);
  void leave_by(int source, Stream& stream) const;
  void make();
  bool has_turn_again(Work* work, Clock::time_point now);
  static void begin_visit(Work& work, Clock::time_point now);
  void note_visit(const Work& work, Clock::time_point now, std::size_t calls);
  [[nodiscard]] Visit visit_of(const Work& work, const NodePlaces::Finish& f) const;
  void check_bound(const Item& item);
  [[nodiscard]] bool exceeds_bound() const;
  [[nodiscard]] bool is_behind_excess() const;
  // Asked while nothing is in the stage.
  [[nodiscard]] bool holds() const;
  void try_end();
  void send_flush();
  std::unique_ptr<Work> new_work();

  TaskGraph& graph_;
  const int id_;
  PlanNode& plan_;
  const bool in_order_;
  // What waits for its turn here may have to wait for the memory of what is before it.
  const bool waits_for_memory_;
  // What it gives is not held against its bound: rows of several blocks at once, in the name of
  // one, where it pairs and another came late; or what is in the memory of a device.
  const bool is_unbound_;
  std::vector<Up> ups_;
  std::atomic<std::size_t> ups_going_{0};
  std::vector<GraphNode*> down_;
  // Where it has named outputs and several nodes behind it: the outputs that each of these takes,
  // as Item::output has them.
  std::vector<std::vector<int>> outputs_;

  // oneTBB's: `run_` with what is before it, or `async_`.
  std::unique_ptr<Waiting> waiting_;
  std::unique_ptr<Limiter> limiter_;
  std::unique_ptr<Run> run_;
  std::unique_ptr<Async> async_;

  std::unique_ptr<OwnThreads> threads_;
  NodePlaces places_;
  Turns turns_;
  StageCalls calls_;
  StageMeter meter_;
  // What it gave against its word, by most.
  struct Excess {
    std::size_t given = 0, declared = 0;  // [bytes]
    std::size_t index = 0;                // of the source item
  };
  std::mutex excess_mutex_;
  Excess excess_;
  std::unique_ptr<Work> cursor_;  // of the source: sent to itself when the next should be made
};

}  // namespace melflow
