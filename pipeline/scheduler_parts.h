// What the scheduler is made of: slots, nodes and the threads of stages that wait for a device.
// Private to scheduler*.cpp.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <optional>
#include <thread>

#include "pipeline/scheduler.h"
#include "pipeline/threads.h"
#include "pipeline/tsan.h"

namespace melflow {

inline std::shared_ptr<const Origins> one_origin(Origin origin) {
  auto out = std::make_shared<Origins>();
  out->push_back(std::move(origin));
  return out;
}

inline void cancel(const Origins& origins) {
  for (const Origin& o : origins) o.stream->cancel();
}

// What a flow node runs for a token. A type with a name, for the stack of a worker and for
// tests/support/tsan.supp.
struct Scheduler::Body {
  Scheduler* scheduler;
  Node* node;
  tbb::flow::continue_msg operator()(tbb::flow::continue_msg token) const {
    scheduler->run_token(*node);
    return token;
  }
};

struct Scheduler::Slot {
  enum class Task { item, source, flush };
  Node* node = nullptr;
  Task task = Task::item;
  Item input;
  std::unique_ptr<StageState> cursor;    // of a stage that gives several blocks
  std::shared_ptr<const Ticket> ticket;  // for the next block
  std::uint64_t observed = 0;            // what the observer calls it while an engine has it
  bool first_block = true;
  std::shared_ptr<const Origins> out_origins;
  std::vector<const Stream*> in_order;  // streams whose other blocks have to wait for this slot
  // Source only: an item that is made and waits for a place and for memory.
  std::size_t index = 0;
  std::size_t cost = 0;
  Emission pending;

  // The source item that the slot works for.
  [[nodiscard]] std::size_t source_index() const {
    return input.origins ? input.origins->front().stream->index() : index;
  }
};

// What an auto queue goes by.
struct AutoDepth {
  std::size_t least = 1, greatest = 1;
  std::size_t settled_least = 1;  // less than this has proved too little
  // At the last review; the times in slot-seconds, as in StageTime.
  std::chrono::steady_clock::time_point since;
  double starved = 0, held_back = 0;
  // When it was to be deepened the last time [worker-seconds].
  std::chrono::steady_clock::time_point asked;
  double workers_busy = 0;
};

struct Scheduler::Node {
  int id = 0;
  AnyStage* stage = nullptr;
  StageTraits traits;
  int concurrency = 1;
  std::size_t capacity = 1;
  std::size_t until_review = 0;  // items until the depth of an auto queue is reviewed; 0: never
  std::size_t filled = 0;        // items since then that left no place free
  std::size_t start_level = 0;   // items in the queue without which it does not begin; 0: it has
  Node* up = nullptr;
  std::vector<Node*> down;

  std::deque<Item> queue;
  std::size_t promised = 0;  // places of the queue kept for items still being made
  std::vector<Slot*> slots;  // ready, running or parked
  std::deque<Slot*> ready;   // may run as soon as a worker takes them
  std::vector<Slot*>
      parked;  // wait for a place or for memory to give their next block; oldest first
  int running = 0;
  std::vector<std::unique_ptr<Slot>> idle_slots;
  Origins
      held;  // of the items a combining stage has taken in; its slot's alone while one is running
  bool flush = false;
  bool woken = false;
  bool ended = false;

  StageReport report;
  mutable StageTime time;
  mutable Clock::time_point since;
  mutable double depth_seconds = 0, edge_seconds = 0;
  std::size_t max_depth = 0;

  std::unique_ptr<tbb::flow::function_node<tbb::flow::continue_msg>> flow;
  std::unique_ptr<Threads> threads;  // one of the three
  std::unique_ptr<Driver> driver;

  bool adapts = false;
  AutoDepth depth;
  std::size_t greatest_capacity = 1;
  std::optional<Clock::time_point> first_came;
  double start_wait_seconds = 0;
  std::size_t start_depth = 0;

  [[nodiscard]] bool has_workers() const { return flow != nullptr; }

  // Every queue behind it has room for one more.
  [[nodiscard]] bool has_place_behind() const {
    return std::none_of(down.begin(), down.end(), [](const Node* d) { return d->is_full(); });
  }
  [[nodiscard]] bool is_full() const { return queue.size() + promised >= capacity; }
  // Parked slots are not being processed.
  [[nodiscard]] int busy() const { return static_cast<int>(ready.size()) + running; }
};

// The thread of a stage whose items are under way elsewhere.
class Scheduler::Driver {
 public:
  Driver(Scheduler& scheduler, Node& node, std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {
    if (!add_thread(thread_, [this, &scheduler, &node] { run(scheduler, node); }))
      throw RunError(no_thread_text(node.report.name));
  }
  ~Driver() { join(); }
  void join() {
    if (thread_.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    engine_->wake();
    thread_.front().join();
    thread_.clear();
  }
  void put_token() {
    {
      const std::lock_guard lock(mutex_);
      // What is not taken yet has woken it.
      if (tokens_++ > 0) return;
    }
    engine_->wake();
  }

 private:
  void run(Scheduler& scheduler, Node& node) {
    std::vector<Engine::Done> done;
    std::size_t under_way = 0;
    for (;;) {
      std::size_t fresh = 0;
      {
        const std::lock_guard lock(mutex_);
        fresh = std::exchange(tokens_, 0);
        if (closed_ && fresh == 0 && under_way == 0) return;
      }
      for (; fresh > 0; --fresh)
        if (scheduler.begin(scheduler.take_ready(node), *engine_)) ++under_way;
      engine_->collect(done);
      under_way -= done.size();
      for (Engine::Done& d : done) {
        auto* slot = static_cast<Slot*>(d.tag);
        scheduler.end(slot, scheduler.settled(*slot, std::move(d.result)));
      }
      done.clear();
    }
  }

  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::size_t tokens_ = 0;
  bool closed_ = false;
  std::vector<std::thread> thread_;  // one; last: it uses all of them
};

// Threads of a stage that waits for a device: `count`, or as many as there are to be had.
class Scheduler::Threads {
 public:
  Threads(Scheduler& scheduler, Node& node, int count) {
    const auto work = [this, &scheduler, &node] {
      while (wait_for_token()) scheduler.execute(scheduler.take_ready(node));
    };
    for (int i = 0; i < count && add_thread(threads_, work); ++i) {
    }
    if (threads_.empty()) throw RunError(no_thread_text(node.report.name));
    count_ = static_cast<int>(threads_.size());
  }
  [[nodiscard]] int count() const { return count_; }
  ~Threads() { join(); }
  void join() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  void put_token() {
    {
      const std::lock_guard lock(mutex_);
      ++tokens_;
    }
    wake_.notify_one();
  }

 private:
  bool wait_for_token() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closed_ || tokens_ > 0; });
    if (tokens_ == 0) return false;
    --tokens_;
    return true;
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t tokens_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
  int count_ = 0;
};

}  // namespace melflow
