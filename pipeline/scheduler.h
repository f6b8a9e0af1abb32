// Decides which stage may start which item, so that both kinds of bounds hold: at most
// `concurrency` items in a stage and `queue` before it, and never more memory than the budget.
//
// Every stage is a tbb::flow::function_node that runs *slots*. A slot is one item under way in one
// stage; it is started only when its output has a place in every queue behind it, so a finished
// item never waits in a worker and nothing is ever rejected. The queues are ours, not oneTBB's: its
// nodes buffer without bound or drop what a successor rejects, and neither depth nor waiting time
// of theirs can be measured. What a node is sent is a token: "one of your slots is ready". Which
// one is looked up under our own mutex, the oldest first, whatever order oneTBB runs its tasks in.
//
// Why it always goes on: whatever is admitted has a ticket for one block, so it needs nothing but
// places, and places become free from the sinks upwards, because a sink never refuses. Only the
// further blocks of a long item need more memory. A slot that waits for that is parked: it keeps no
// place in a queue and does not count as concurrency, so nobody waits for it; and the oldest item
// has a reserve of its own. Batches that wait for more are sent when nothing else moves.
// An auto queue changes its depth, never below one place, and what is in it or has a place in it
// keeps it: a queue that is over its depth is a full one, whose consumer makes it shorter. A node
// that waits for its queue to fill (`start_at`) begins at the latest when the queue is full, since
// it waits for no more than it holds; or when its producer has ended; or, where memory keeps the
// items out that it waits for, when nothing else moves.
//
// One mutex guards all of it. It is taken once an item and stage, twice where another worker takes
// the item over; stages run outside of it. See docs/decisions/0001-scheduler.md.
#pragma once

#include <tbb/flow_graph.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/observer.h"
#include "pipeline/plan.h"
#include "pipeline/report.h"

namespace melflow {

struct AutoDepth;

class Scheduler {
 public:
  /// Belongs to the task arena in which it is made. Runs the first `nodes` nodes of the plan; what
  /// takes the output of the last of them is left out. `observer` may be null.
  Scheduler(Plan& plan, RunContext& run, std::size_t nodes, RunObserver* observer);
  ~Scheduler();

  /// Starts the source.
  void start();
  /// Works along until every stage has ended.
  void wait();
  /// Nothing new; what is under way is finished, long files are cut off. At any time, also before
  /// start().
  void stop();
  /// Drops everything; the first error is kept.
  void abort(std::exception_ptr error);
  /// Memory came back: the source or a long file may go on.
  void memory_freed();

  [[nodiscard]] std::exception_ptr error() const;
  /// Source items below this index have a stream, which closes their line in the ledger.
  [[nodiscard]] std::size_t admitted() const;
  void fill(RunReport& report) const;
  [[nodiscard]] std::size_t rows_taken() const;
  [[nodiscard]] std::size_t bytes_read() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Node;
  struct Slot;
  struct Body;
  class Threads;
  class Driver;

  // What a locked section is done with; destroyed after it, because the last reference to a stream
  // closes its ledger line and tells the sinks, and a ticket wakes who waits for memory.
  struct Discard {
    std::vector<Item> items;
    std::vector<std::unique_ptr<StageState>> cursors;
    [[nodiscard]] bool empty() const { return items.empty() && cursors.empty(); }
    void clear() {
      cursors.clear();
      items.clear();
    }
  };

  // What a worker does for one token.
  void run_token(Node& n);
  // Runs the slot's stage, hands on what it gave, and returns the next slot this worker should run:
  // the one furthest down the graph, whose input is still in this core's cache.
  Slot* execute(Slot* slot);
  // The ready slot of a node that has waited longest; every token stands for one.
  Slot* take_ready(Node& n);
  Emission process(Slot& slot);
  // What the slot's stage gave, made ready to be handed on; an error fails the slot's streams.
  Emission settled(Slot& slot, Result<Emission> result);
  // Hands on what an executed slot gave; returns the next one for this worker unless it is none.
  Slot* finish(Slot* slot, Emission out);
  // The same in two steps, for an engine. begin: false when it did not take the slot.
  bool begin(Slot* slot, Engine& engine);
  void end(Slot* slot, Emission out);
  // Runs body() with the mutex held, then starts what can start, sends the tokens for it, and looks
  // whether the run stalled or ended. With `keep_one` one of the started slots is returned instead.
  template <class F>
  Slot* locked(bool keep_one, F&& body);

  // All below: with the mutex held. Who may be able to go on is woken; tokens for what was started
  // collect in tokens_, what is done with in discard_.
  void complete(Slot& slot, Emission& out);
  void wake(Node& n);
  void wake_all();
  void start_woken();
  bool try_start(Node& n);
  bool try_source(Node& n);
  void skip_done();
  bool try_resume(Node& n);
  bool try_item(Node& n);
  bool try_flush(Node& n);
  bool try_end(Node& n);
  void deliver(Node& n, Emission& out, std::shared_ptr<const Origins> origins);
  void open_queue(Node& n, const PlanNode& plan);
  bool may_begin(Node& n);
  void begin_node(Node& n);
  bool begin_waiting();
  void review_queue(Node& n);
  void deepen(Node& n);
  bool workers_were_idle(AutoDepth& depth) const;
  void shorten(Node& n);
  void unstall();
  void fail_run(std::exception_ptr error);
  void park(Node& n, Slot& slot);
  void drop_parked();
  void drop_held(Node& n);
  void reserve_places(Node& n);
  void release_places(Node& n);
  bool conflicts(const Node& n, const Item& item) const;
  Slot* new_slot(Node& n);
  void free_slot(Node& n, Slot* slot);
  void make_ready(Node& n, Slot* slot);
  Slot* keep_deepest();
  std::shared_ptr<const Ticket> ticket_for(std::size_t bytes, std::size_t index);
  void note_memory_wait(bool waiting);
  bool no_more_input(const Node& n) const;
  bool all_ended() const;
  void touch(Node& n) const;
  void tick(Node& n) const;

  Plan& plan_;
  RunContext& run_;
  RunObserver* const observer_;
  tbb::flow::graph graph_;
  int sinks_ = 0;  // nodes whose output nobody takes
  std::size_t total_ = 0;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::size_t next_ = 0;      // next source item
  bool some_are_done_ = false;  // source items whose lines were closed before the start
  std::size_t admitted_ = 0;  // behind the last source item that has a stream
  std::size_t active_ = 0;    // slots ready or running in the whole graph
  bool stopping_ = false;
  bool aborting_ = false;
  bool ended_ = false;
  std::atomic<bool> memory_waiting_{false};  // also read without the mutex, by memory_freed()
  Clock::time_point memory_since_;
  double memory_wait_ = 0;
  Clock::time_point began_;
  std::exception_ptr error_;

  // Of one locked section.
  mutable Clock::time_point now_;
  std::vector<Node*> woken_;
  std::vector<Node*> tokens_;
  Discard discard_;
};

}  // namespace melflow
