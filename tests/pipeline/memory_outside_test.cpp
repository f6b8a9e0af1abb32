// Items that sinks hold: a run waits for the memory of those that a sink's own thread has, and lets
// them go at its end.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace melflow::test::memory_outside_test {
namespace {

// Takes items as a sink that uploads them would. When none has come for a while, because the graph
// waits for memory, `idle` is called with the held items.
class Uploads {
 public:
  using Idle = std::function<void(std::deque<Item>& held)>;
  explicit Uploads(Idle idle) : idle_(std::move(idle)), thread_([this] { run(); }) {}
  void put(Item item) {
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(item));
    changed_.notify_one();
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  void run() {
    for (bool is_over = false; !is_over;) {
      std::deque<Item> mine;
      {
        std::unique_lock lock(mutex_);
        const std::size_t before = held_.size();
        while (changed_.wait_for(lock, std::chrono::milliseconds(20)) ==
                   std::cv_status::no_timeout &&
               !is_over_) {
        }
        if (held_.size() > before && !is_over_) continue;
        is_over = is_over_;
        most_ = std::max(most_, held_.size());
        mine.swap(held_);
      }
      if (!is_over && !mine.empty()) idle_(mine);
      if (is_over) mine.clear();
      const std::lock_guard lock(mutex_);
      held_.insert(held_.begin(), mine.begin(), mine.end());
    }
    held_.clear();
  }

  const Idle idle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> held_;
  bool is_over_ = false;
  std::size_t most_ = 0;
  std::thread thread_;
};

struct Ran {
  RunReport report;
  std::size_t most = 0;  // the most items held at once
};

Ran run(int workers, const std::function<void(Runner&, std::deque<Item>&)>& idle) {
  World world;
  world.check_edges = false;
  Runner* running = nullptr;
  Uploads uploads([&](std::deque<Item>& held) { idle(*running, held); });
  world.hooks["out"] =
      on_item([&](const Number&, ItemContext* context) { uploads.put(context->item()); });
  world.on_drop_waiting["out"] = [&] { uploads.end(); };
  Runner runner(test::make_plan(Graph("files: numbers items=30; a: step < files; out: keep < a")
                                    .memory(1000)
                                    .workers(workers),
                                world));
  running = &runner;
  Ran out{runner.run(), uploads.most()};
  test::check_run({out.report, runner.remarks()}, world);
  return out;
}

}  // namespace

TEST_CASE("memory outside: a run waits until a sink's own thread lets go of items") {
  const Watchdog watchdog("memory outside: wait");
  for (const int workers : test::kWorkers) {
    CAPTURE(workers);
    const Ran ran = run(workers, [](Runner&, std::deque<Item>& held) { held.pop_front(); });
    CHECK(ran.report.error.empty());
    CHECK(ran.report.ending == Ending::complete);
    CHECK(ran.report.counts.ok == 30);
    CHECK(ran.most < 30);
  }
}

TEST_CASE("memory outside: one item at a time, which a sink's own thread drops") {
  const Watchdog watchdog("memory outside: one at a time");
  for (const int workers : test::kWorkers) {
    CAPTURE(workers);
    World world;
    world.check_edges = false;
    std::mutex mutex;
    std::condition_variable changed;
    Item held;
    bool is_over = false;
    std::size_t dropped = 0;
    std::thread drops([&] {
      std::unique_lock lock(mutex);
      while (changed.wait(lock, [&] { return is_over || held.origins != nullptr; }), !is_over) {
        Item mine = std::move(held);
        held = {};
        lock.unlock();
        // Sooner or later, so that it meets the graph in each step of its way to a wait.
        for (std::size_t n = ++dropped % 50; n > 0; --n) std::this_thread::yield();
        mine = {};
        lock.lock();
      }
    });
    world.hooks["out"] = on_item([&](const Number&, ItemContext* context) {
      const std::lock_guard lock(mutex);
      held = context->item();
      changed.notify_one();
    });
    world.on_drop_waiting["out"] = [&] {
      {
        const std::lock_guard lock(mutex);
        is_over = true;
        changed.notify_one();
      }
      drops.join();
      held = {};
    };
    const Outcomes o = test::run(Graph("files: numbers items=1000; a: step < files; "
                                       "out: keep < a")
                                     .memory(300)
                                     .workers(workers),
                                 world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.ok == 1000);
  }
}

TEST_CASE("memory outside: a sink lets go of what waits for lost items when nothing else moves") {
  const Watchdog watchdog("memory outside: lost");
  for (const int workers : test::kWorkers) {
    CAPTURE(workers);
    World world;
    world.check_edges = false;
    std::mutex mutex;
    std::deque<Item> held;
    std::size_t most = 0;
    const auto let_go = [&] {
      std::deque<Item> mine;  // dropped without the mutex
      const std::lock_guard lock(mutex);
      most = std::max(most, held.size());
      mine.swap(held);
    };
    world.hooks["out"] = on_item([&](const Number&, ItemContext* context) {
      const std::lock_guard lock(mutex);
      held.push_back(context->item());
    });
    world.on_drop_lost["out"] = world.on_drop_waiting["out"] = let_go;
    const Outcomes o = test::run(Graph("files: numbers items=30; a: step < files; out: keep < a")
                                     .memory(1000)
                                     .workers(workers),
                                 world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.ok == 30);
    CHECK(most < 30);
  }
}

TEST_CASE("memory outside: a stop ends the waiting") {
  const Watchdog watchdog("memory outside: stop");
  for (const int workers : test::kWorkers) {
    CAPTURE(workers);
    const Ran ran = run(workers, [](Runner& runner, std::deque<Item>&) { runner.stop(); });
    CHECK(ran.report.error.empty());
    CHECK(ran.report.ending == Ending::stopped);
    CHECK(ran.report.counts.ok == ran.most);
    CHECK(ran.report.counts.ok + ran.report.counts.not_run == 30);
  }
}

TEST_CASE("memory outside: a stop calls no listener on the thread that asks for it") {
  const Watchdog watchdog("memory outside: listeners");
  World world;
  world.check_edges = false;
  Runner* running = nullptr;
  std::atomic<std::thread::id> stopper{};
  std::atomic<int> closed{0}, by_stopper{0};
  Uploads uploads([&](std::deque<Item>&) {
    stopper = std::this_thread::get_id();
    running->stop();
    stopper = std::thread::id();
  });
  world.on_start["out"] = [&](RunContext& run) {
    run.ledger.subscribe([&](std::size_t index, Outcome) {
      if (index > 0) ++closed;
      if (std::this_thread::get_id() == stopper)
        ++by_stopper;
      else
        CHECK(running->progress().counts.found == 30);
    });
  };
  // Blocks of the oldest item take all memory, and further blocks of other items wait, whose first
  // blocks are done.
  world.hooks["out"] = on_item([&](const Number& n, ItemContext* context) {
    if (n.item == 0) uploads.put(context->item());
  });
  world.on_drop_waiting["out"] = [&] { uploads.end(); };
  Runner runner(test::make_plan(Graph("files: numbers items=30; cut: expand < files blocks=900; "
                                      "out: keep < cut")
                                    .memory(3000)
                                    .workers(2),
                                world));
  running = &runner;
  CHECK(runner.run().ending == Ending::stopped);
  CHECK(closed == 29);
  CHECK(by_stopper == 0);
}

TEST_CASE("memory outside: at the end all sinks drop what is lost before one drops what waits") {
  for (const int workers : test::kWorkers) {
    World world;
    std::vector<std::string> order;
    for (const char* name : {"one", "two"}) {
      world.on_drop_lost[name] = [&order] { order.emplace_back("lost"); };
      world.on_drop_waiting[name] = [&order] { order.emplace_back("waiting"); };
    }
    const Outcomes o = test::run(Graph("files: numbers items=3; a: step < files; one: keep < a; "
                                       "two: keep < a")
                                     .workers(workers),
                                 world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(order == std::vector<std::string>{"lost", "lost", "waiting", "waiting"});
  }
}

}  // namespace melflow::test::memory_outside_test
