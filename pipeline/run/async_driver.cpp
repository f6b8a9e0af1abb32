#include "pipeline/run/async_driver.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/base/threads.h"
#include "pipeline/run/graph_node.h"

namespace melflow {
namespace {

// Null where there is none.
Work* take_first(std::deque<Work*>& queue) {
  if (queue.empty()) return nullptr;
  Work* work = queue.front();
  queue.pop_front();
  return work;
}

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

// The threads of a stage whose process() waits.
class BlockingThreads final : public AsyncDriver {
 public:
  explicit BlockingThreads(GraphNode& node) : node_(node) {}
  ~BlockingThreads() override { join(); }

  void start_threads() override {
    const auto work = [this] {
      while (Work* w = wait()) {
        node_.run(w);
        node_.release_wait();
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
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(work);
    }
    woken_.notify_one();
  }

 private:
  // Null when the thread has to end.
  Work* wait() {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [this] { return is_closed_ || !queue_.empty(); });
    return take_first(queue_);
  }

  GraphNode& node_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Work*> queue_;
  bool is_closed_ = false;
  std::vector<std::thread> threads_;
  int count_ = 0;
};

// The thread of a stage whose items are in flight elsewhere.
class EngineDriver final : public AsyncDriver {
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
  // If the queue already had work, the thread has been woken or looks again after its next result.
  void put(Work* work) override {
    const std::lock_guard lock(mutex_);
    queue_.push_back(work);
    if (queue_.size() == 1) engine_->wake();
  }

 private:
  void drive() {
    std::vector<Engine::Done> done;
    while (!is_closed_.load() || in_flight_ > 0) {
      while (in_flight_ < node_.plan().concurrency && begin_next()) {
      }
      engine_->collect(done);
      in_flight_ -= static_cast<int>(done.size());
      for (Engine::Done& d : done) {
        auto& tag = *static_cast<Work::InEngine::Tag*>(d.tag);
        Work* work = tag.work;
        node_.executor().end(tag, std::move(d.result));
        finish_if_done(work);
      }
      done.clear();
    }
  }

  // False: nothing can begin now.
  bool begin_next() {
    if (current_ == nullptr) {
      {
        const std::lock_guard lock(mutex_);
        current_ = take_first(queue_);
      }
      if (current_ == nullptr) return false;
      node_.begin(*current_);
    }
    Work* work = current_;
    if (node_.executor().begin(*engine_, *work)) ++in_flight_;
    if (work->progress.at == work->items.size()) {
      current_ = nullptr;
      finish_if_done(work);
    }
    return true;
  }

  void finish_if_done(Work* work) {
    if (!node_.executor().is_done(*work)) return;
    node_.finish(work, {StageExecutor::Rest::none, work->in_engine->passed});
    node_.release_wait();
  }

  GraphNode& node_;
  std::unique_ptr<Engine> engine_;
  std::atomic<bool> is_closed_{false};
  std::mutex mutex_;
  std::deque<Work*> queue_;
  int in_flight_ = 0;
  Work* current_ = nullptr;          // some of its items are not begun yet
  std::vector<std::thread> thread_;  // one; last: it uses all of them
};

}  // namespace

std::unique_ptr<AsyncDriver> AsyncDriver::make(GraphNode& node) {
  const PlanNode& plan = node.plan();
  if (plan.faces.engine != nullptr)
    if (auto engine = plan.faces.engine->engine(plan.concurrency))
      return std::make_unique<EngineDriver>(node, std::move(engine));
  if (plan.resources.blocking) return std::make_unique<BlockingThreads>(node);
  return nullptr;
}

}  // namespace melflow
