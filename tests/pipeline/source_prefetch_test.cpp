// Items of a source that are prefetched by workers other than the one that takes them.
#include "pipeline/run/source_feed.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "pipeline/report/observer.h"
#include "tests/pipeline/files_per_task.h"
#include "tests/support/watchdog.h"

namespace melflow::test::source_prefetch_test {
namespace {

constexpr std::size_t kItems = 20 * SourceFeed::kRange + 5;

Graph ahead(const std::string& files_per_task) {
  return Graph()
      .node("files", "numbers", "",
            {{"items", std::to_string(kItems)},
             {"ahead", "true"},
             {"files_per_task", files_per_task}})
      .nodes("a: step < files; out: keep < a");
}

// Counts how often each item was made.
class Made {
 public:
  explicit Made(World& world) {
    world.hooks["files"] = on_item([this](const Number& n) { ++times[n.item]; });
  }
  std::vector<std::atomic<int>> times = std::vector<std::atomic<int>>(kItems);
};

}  // namespace

TEST_CASE("source prefetch: each item is made once, and every one is there") {
  const Watchdog watchdog("source prefetch: once");
  for (int workers : test::kWorkers)
    for (const char* files : {"1", "7", "64", "auto"}) {
      CAPTURE(workers);
      CAPTURE(files);
      World world;
      const Made made(world);
      const Outcomes o = test::run(ahead(files).workers(workers), world);
      CHECK(o.report.error == "");
      CHECK(o.report.counts.ok == kItems);
      CHECK(items(world) == all_but(kItems, {}));
      for (const auto& n : made.times) CHECK(n == 1);
    }
}

TEST_CASE("source prefetch: several are made at once, before it is their turn") {
  const Watchdog watchdog("source prefetch: at once");
  // The first items of two ranges wait for each other, on two threads: the source alone would wait
  // for ever.
  World world;
  std::mutex mutex;
  std::set<std::thread::id> in;
  std::condition_variable met;
  world.hooks["files"] = [&](const Number& n, ItemContext*) -> std::optional<ItemError> {
    if (n.item % SourceFeed::kRange != 0 || n.item == 0 || n.item > 2 * SourceFeed::kRange)
      return {};
    std::unique_lock lock(mutex);
    in.insert(std::this_thread::get_id());
    met.notify_all();
    met.wait(lock, [&] { return in.size() == 2; });
    return {};
  };
  const Outcomes o = test::run(ahead("1").workers(2), world);
  CHECK(o.report.counts.ok == kItems);
}

TEST_CASE("source prefetch: the source waits for what is being made, and does not make it again") {
  const Watchdog watchdog("source prefetch: the source waits");
  constexpr std::size_t kHeld = SourceFeed::kRange;
  // Counts the source's visits; each makes one item.
  class Visits final : public RunObserver {
   public:
    void enter(int node) noexcept override {
      if (node != 0) return;
      const std::lock_guard lock(mutex_);
      ++count_;
      more_.notify_all();
    }
    void leave() noexcept override {}
    std::uint64_t begin(int) noexcept override { return 0; }
    void end(std::uint64_t) noexcept override {}
    void wait_for(std::size_t count) {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return count_ >= count; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable more_;
    std::size_t count_ = 0;
  };
  for (int round = 0; round < 20; ++round) {
    World world;
    Visits visits;
    std::vector<std::atomic<int>> times = std::vector<std::atomic<int>>(kItems);
    world.hooks["files"] = on_item([&](const Number& n) {
      ++times[n.item];
      if (n.item == kHeld) visits.wait_for(kHeld + 1);  // its turn has come
    });
    Outcomes o;
    {
      Runner runner(test::make_plan(ahead("1").workers(2), world), &visits);
      o.report = runner.run();
    }
    test::check_run(o, world);
    CHECK(items(world) == all_but(kItems, {}));
    for (const auto& n : times) CHECK(n == 1);
  }
}

TEST_CASE("source prefetch: closed lines are passed over, whole ranges of them, too") {
  const Watchdog watchdog("source prefetch: closed lines");
  for (const std::size_t first :
       {std::size_t{0}, std::size_t{1}, SourceFeed::kRange, 2 * SourceFeed::kRange + 3})
    for (const std::size_t count : {std::size_t{1}, SourceFeed::kRange, 7 * SourceFeed::kRange}) {
      CAPTURE(first);
      CAPTURE(count);
      World world;
      const Made made(world);
      std::set<std::size_t> closed;
      for (std::size_t i = first; i < first + count; ++i) closed.insert(i);
      world.on_start["out"] = [&](RunContext& run) {
        for (const std::size_t i : closed) run.ledger.close(i, Outcome::not_run, -1, "");
      };
      const Outcomes o = test::run(ahead("3").workers(2), world);
      CHECK(o.report.counts.ok == kItems - count);
      CHECK(items(world) == all_but(kItems, closed));
      for (std::size_t i = 0; i < kItems; ++i) CHECK(made.times[i] == (closed.contains(i) ? 0 : 1));
    }
}

TEST_CASE("source prefetch: an error of the run counts when the run comes to its item") {
  const Watchdog watchdog("source prefetch: an error");
  for (int workers : test::kWorkers) {
    CAPTURE(workers);
    constexpr std::size_t kBad = 3 * SourceFeed::kRange + 7;
    World world;
    world.check_edges = false;
    world.hooks["files"] = on_item([](const Number& n) {
      if (n.item == kBad) throw RunError("the end");
    });
    const Outcomes o = test::run(ahead("1").workers(workers), world);
    CHECK(o.report.ending == Ending::failed);
    CHECK(o.report.error == "the end");
    for (const std::size_t i : items(world)) CHECK(i < kBad);
    CHECK(o.report.counts.ok + o.report.counts.not_run == kItems);
  }
}

TEST_CASE("source prefetch: a stop leaves the accounts whole, whatever was made") {
  const Watchdog watchdog("source prefetch: a stop");
  for (int workers : test::kWorkers) {
    CAPTURE(workers);
    World world;
    world.check_edges = false;
    Outcomes o;
    {
      std::optional<Runner> runner;
      world.hooks["a"] = on_item([&](const Number& n) {
        if (n.item == 100) runner->stop();
      });
      runner.emplace(test::make_plan(ahead("4").workers(workers), world));
      o.report = runner->run();
      o.remarks = runner->remarks();
    }
    test::check_run(o, world);
    CHECK(o.report.ending == Ending::stopped);
    CHECK(o.report.counts.failed == 0);
    CHECK(items(world).size() == o.report.counts.ok);
    CHECK(o.report.counts.ok + o.report.counts.not_run == kItems);
  }
}

}  // namespace melflow::test::source_prefetch_test
