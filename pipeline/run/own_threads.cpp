#include "pipeline/run/own_threads.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/threads.h"
#include "pipeline/run/graph_node.h"

namespace melflow {
namespace {

// Not locked: its owner is.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  // Work is left here when a run ended out of memory.
  ~Queue() {
    for (Work* work : heap_) GraphNode::drop(work);
  }
  void put(Work* work) {
    heap_.push_back(work);
    std::push_heap(heap_.begin(), heap_.end(), IsYounger());
  }
  void let_in(int more) { may_take_ += more; }
  [[nodiscard]] bool can_take() const { return may_take_ > 0; }
  /// The oldest; null where none is admitted.
  Work* take() {
    if (may_take_ == 0) return nullptr;
    --may_take_;
    std::pop_heap(heap_.begin(), heap_.end(), IsYounger());
    Work* work = heap_.back();
    heap_.pop_back();
    return work;
  }

 private:
  std::vector<Work*> heap_;
  int may_take_ = 0;
};

// [s]; the threads must not have been joined.
double cpu_seconds_of(std::vector<std::thread>& threads) {
  double out = 0;
  for (std::thread& t : threads) {
    clockid_t clock{};
    timespec spent{};
    if (pthread_getcpuclockid(t.native_handle(), &clock) == 0 && clock_gettime(clock, &spent) == 0)
      out += static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
  }
  return out;
}

// Threads of a stage whose process() waits.
class Waiters final : public OwnThreads {
 public:
  explicit Waiters(GraphNode& node) : node_(node) {}
  ~Waiters() override { join(); }

  void start_threads() override {
    const auto work = [this] {
      while (Work* w = wait()) {
        node_.run(w);
        node_.let_go();
      }
    };
    for (int i = 0; i < node_.plan().concurrency && add_thread(threads_, node_.name(), work); ++i) {
    }
    if (threads_.empty()) throw RunError(no_thread_text(node_.name()));
    count_ = static_cast<int>(threads_.size());
  }
  void join() override {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    woken_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  [[nodiscard]] int count() const override { return count_; }
  [[nodiscard]] double cpu_seconds() override { return cpu_seconds_of(threads_); }
  void put(Work* work) override {
    const std::lock_guard lock(mutex_);
    queue_.put(work);
  }
  void let_in(int more) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.let_in(more);
    }
    if (more == 1)
      woken_.notify_one();
    else
      woken_.notify_all();
  }

 private:
  // Null when it is to end.
  Work* wait() {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [this] { return is_closed_ || queue_.can_take(); });
    return queue_.take();
  }

  GraphNode& node_;
  std::mutex mutex_;
  std::condition_variable woken_;
  Queue queue_;
  bool is_closed_ = false;
  std::vector<std::thread> threads_;
  int count_ = 0;
};

// The thread of a stage whose items are under way elsewhere.
class EngineDriver final : public OwnThreads {
 public:
  EngineDriver(GraphNode& node, std::unique_ptr<Engine> engine)
      : node_(node), engine_(std::move(engine)) {}
  ~EngineDriver() override { join(); }
  void start_threads() override {
    if (!add_thread(thread_, node_.name(), [this] { drive(); }))
      throw RunError(no_thread_text(node_.name()));
  }
  void join() override {
    if (thread_.empty()) return;
    is_closed_.store(true);
    engine_->wake();
    thread_.front().join();
    thread_.clear();
  }
  [[nodiscard]] double cpu_seconds() override { return cpu_seconds_of(thread_); }
  void put(Work* work) override {
    const std::lock_guard lock(mutex_);
    queue_.put(work);
  }
  // Where the queue already had work to take, the thread was woken, or checks after its next
  // result.
  void let_in(int more) override {
    const std::unique_lock lock(mutex_);
    const bool wakes = !queue_.can_take();
    queue_.let_in(more);
    if (wakes) engine_->wake();
  }

 private:
  void drive() {
    std::vector<Engine::Done> done;
    while (!is_closed_.load() || under_way_ > 0) {
      while (under_way_ < node_.plan().concurrency && begin_next()) {
      }
      engine_->collect(done);
      under_way_ -= static_cast<int>(done.size());
      for (Engine::Done& d : done) {
        auto& tag = *static_cast<Work::Begun*>(d.tag);
        Work* work = tag.work;
        node_.calls().end(tag, std::move(d.result));
        finish_if_done(work);
      }
      done.clear();
    }
  }

  // False: nothing can begin now.
  bool begin_next() {
    if (at_hand_ == nullptr) {
      {
        const std::lock_guard lock(mutex_);
        at_hand_ = queue_.take();
      }
      if (at_hand_ == nullptr) return false;
      if (!node_.begin(at_hand_)) {
        at_hand_ = nullptr;
        node_.let_go();
        return true;
      }
    }
    Work* work = at_hand_;
    if (node_.calls().begin(*engine_, *work, work->passed)) ++under_way_;
    if (work->at == work->items.size()) {
      at_hand_ = nullptr;
      finish_if_done(work);
    }
    return true;
  }

  void finish_if_done(Work* work) {
    if (!node_.calls().is_done(*work)) return;
    node_.finish(work, {StageCalls::Rest::none, std::exchange(work->passed, {})});
    node_.let_go();
  }

  GraphNode& node_;
  std::unique_ptr<Engine> engine_;
  std::atomic<bool> is_closed_{false};
  std::mutex mutex_;
  Queue queue_;
  int under_way_ = 0;
  Work* at_hand_ = nullptr;          // some of its items are not begun yet
  std::vector<std::thread> thread_;  // one; last: it uses all of them
};

}  // namespace

std::unique_ptr<OwnThreads> OwnThreads::make(GraphNode& node) {
  const PlanNode& plan = node.plan();
  if (plan.faces.engine != nullptr)
    if (auto engine = plan.faces.engine->engine(plan.concurrency))
      return std::make_unique<EngineDriver>(node, std::move(engine));
  if (plan.resources.blocking) return std::make_unique<Waiters>(node);
  return nullptr;
}

}  // namespace melflow
