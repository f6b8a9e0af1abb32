// Queues that find their own depth, and nodes that wait for theirs to fill: within their bounds,
// and never for ever.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace queue_test {

using namespace melflow;
using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;
using test::edge_to;
using test::Graph;
using test::Number;
using test::Outcomes;
using test::Watchdog;
using test::World;

namespace {

// Pauses of the producer, before its items 1, 1 + `length` and so on: when all before are with the
// consumer `to`, as long again as that took. However slow the machine is, the consumer with a short
// queue has nothing to do for a good part of the time.
World::Hook even_bursts(World& world, std::size_t length, const std::string& to) {
  auto began = std::make_shared<std::chrono::steady_clock::time_point>(Clock::now());
  // By number of the call and not of the item: two items may change places on their way here.
  auto calls = std::make_shared<std::atomic<std::size_t>>(0);
  return [&consumer = world.log(to), length, began, calls](
             const Number&, ItemContext*) -> std::optional<ItemError> {
    const std::size_t before = (*calls)++;
    if (before % length != 1) return {};
    while (consumer.finished < static_cast<long>(before)) std::this_thread::yield();
    std::this_thread::sleep_for(
        std::max<Clock::duration>(Clock::now() - *began, microseconds(500)));
    *began = Clock::now();
    return {};
  };
}

// Takes an item only when the producer `from` has made `more` beyond it, of `items`: its queue of
// that many places was full.
World::Hook when_full(World& world, long more, long items, const std::string& from) {
  auto calls = std::make_shared<std::atomic<long>>(0);
  return [&made = world.log(from).finished, more, items, calls](
             const Number&, ItemContext*) -> std::optional<ItemError> {
    const long before = (*calls)++;
    while (made < std::min(items, before + 1 + more)) std::this_thread::yield();
    return {};
  };
}

Graph two_threads(int items, Graph::Options out_options = {}) {
  out_options.insert(out_options.end(), {{"concurrency", "1"}, {"own_threads", "true"}});
  return Graph()
      .node("files", "numbers", "", {{"items", std::to_string(items)}})
      .node("a", "step", "files", {{"concurrency", "1"}, {"own_threads", "true"}})
      .node("out", "keep", "a", std::move(out_options))
      .workers(2);
}

// What the consumer sees of its queue when it takes its first item: how many were made before.
struct FirstLook {
  std::atomic<long> made{-1};
  World::Hook hook(World& world, const std::string& producer) {
    return [this, &world, producer](const Number&, ItemContext*) -> std::optional<ItemError> {
      long none = -1;
      made.compare_exchange_strong(none, world.log(producer).finished.load());
      return {};
    };
  }
};

}  // namespace

TEST_CASE("queue: auto gets deeper where the consumer starves and the producer waits for a place") {
  const Watchdog watchdog("queue: deeper");
  World world;
  world.check_edges = false;
  // More in a burst than the greatest depth: it would get deeper still.
  constexpr long kBurst = 48;
  world.hooks["a"] = even_bursts(world, kBurst, "out");
  // The queue is then full for as long as it took to fill, however slow the producer is. On a machine
  // that does other things that may take a while; it goes on until it is seen.
  Runner* self = nullptr;
  long calls = 0;
  bool is_seen = false;
  world.hooks["out"] = [&, &made = world.log("a").finished, &taken = world.log("out").started](
                           const Number&, ItemContext*) -> std::optional<ItemError> {
    if (is_seen) return {};  // no more may come
    const long before = calls++;
    const long end_of_burst = 1 + (before + kBurst - 1) / kBurst * kBurst;
    const Clock::time_point began = Clock::now();
    while (made < std::min(end_of_burst, before + 3)) std::this_thread::yield();
    std::this_thread::sleep_for(std::max<Clock::duration>(Clock::now() - began, microseconds(50)));
    is_seen = made - taken >= 4;
    if (is_seen) self->stop();
    return {};
  };
  Outcomes o;
  {
    Runner runner(test::make_plan(two_threads(100'000), world));
    self = &runner;
    o.report = runner.run();
  }
  test::check_run(o, world);
  CHECK(o.report.ending == Ending::stopped);
  const EdgeReport& e = edge_to(o.report, "out");
  CHECK(e.adapts);
  CHECK(e.capacity > 2);
  CHECK(e.greatest_capacity <= 16);
  CHECK(e.capacity <= e.greatest_capacity);
  CHECK(e.max_depth > 2);
}

TEST_CASE("queue: a number stays that number, however it starves") {
  const Watchdog watchdog("queue: fixed");
  World world;
  world.hooks["out"] = when_full(world, 2, 600, "a");
  const Outcomes o = test::run(two_threads(600, {{"queue", "2"}}), world);
  const EdgeReport& e = edge_to(o.report, "out");
  CHECK_FALSE(e.adapts);
  CHECK(e.capacity == 2);
  CHECK(e.greatest_capacity == 2);
  CHECK(e.max_depth == 2);
}

TEST_CASE("queue: auto takes no places when the memory is half used") {
  const Watchdog watchdog("queue: memory");
  World world;
  world.hooks["out"] = when_full(world, 2, 640, "a");
  // Something else has half of it from the beginning to the end.
  std::size_t half = 0;
  world.on_start["out"] = [&](RunContext& run) {
    half = run.budget->capacity() / 2 + 1;
    REQUIRE(run.budget->try_acquire(half, Claim::later));
  };
  world.on_finish["out"] = [&](RunContext& run, Ending) { run.budget->release(half); };
  const Outcomes o = test::run(two_threads(640).memory(1 << 20), world);
  CHECK(o.report.counts.ok == 640);
  CHECK(edge_to(o.report, "out").max_depth == 2);
  CHECK(edge_to(o.report, "out").greatest_capacity == 2);
}

TEST_CASE("queue: auto gets shorter while it is full, down to what its node takes at once") {
  const Watchdog watchdog("queue: shorter");
  // A slot is held longer each time, so that at last the producer waits for most of the time, however
  // slow it is.
  bool is_shorter = false;
  for (auto hold = microseconds(500); !is_shorter; hold *= 2) {
    World world;
    auto calls = std::make_shared<std::atomic<long>>(0);
    world.hooks["out"] = [&made = world.log("a").finished, calls, hold](
                             const Number&, ItemContext*) -> std::optional<ItemError> {
      ++*calls;
      std::this_thread::sleep_for(hold);
      // One for each slot is in the queue, so none finds it empty.
      while (made < std::min(700L, *calls + 7)) std::this_thread::yield();
      return {};
    };
    const Outcomes o = test::run(two_threads(700).set("out", "concurrency", "6"), world);
    const EdgeReport& e = edge_to(o.report, "out");
    CHECK(e.greatest_capacity >= 12);
    CHECK(e.capacity >= 7);
    is_shorter = e.capacity < e.greatest_capacity;
  }
}

TEST_CASE("start_at: a node takes its first item when that share of its queue is there") {
  const Watchdog watchdog("start_at: share");
  struct Row {
    const char *queue, *start_at;
    long items;
  };
  for (const Row& row : {Row{"8", "0.5", 4}, Row{"8", "1", 8}, Row{"10", "0.25", 3},
                         Row{"auto", "1", 2}, Row{"8", "0.01", 1}}) {
    for (const char* kind : {"plain", "own_threads", "elsewhere"}) {
      CAPTURE(row.queue);
      CAPTURE(row.start_at);
      CAPTURE(kind);
      World world;
      FirstLook look;
      world.hooks["b"] = look.hook(world, "a");
      Graph g = Graph()
                    .node("files", "numbers", "", {{"items", "100"}})
                    .node("a", "step", "files", {{"concurrency", "1"}})
                    .node("b", "step", "a",
                          {{"concurrency", "1"}, {"queue", row.queue}, {"start_at", row.start_at}})
                    .node("out", "keep", "b")
                    .workers(2);
      if (kind != std::string("plain")) g.set("b", kind, "true");
      const Outcomes o = test::run(g, world);
      CHECK(o.report.counts.ok == 100);
      CHECK(look.made >= row.items);
      const EdgeReport& e = edge_to(o.report, "b");
      CHECK(e.start_depth == static_cast<std::size_t>(row.items > 1 ? row.items : 0));
      CHECK((e.start_wait_seconds > 0) == (row.items > 1));
      CHECK(edge_to(o.report, "out").start_depth == 0);
    }
  }
}

TEST_CASE("start_at: fewer items than the share go as soon as no more can come") {
  const Watchdog watchdog("start_at: few");
  for (int items : {0, 1, 3}) {
    CAPTURE(items);
    World world;
    const Outcomes o = test::run(two_threads(items, {{"queue", "50"}, {"start_at", "1"}}), world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.ok == static_cast<std::size_t>(items));
    CHECK(edge_to(o.report, "out").start_depth == static_cast<std::size_t>(items));
  }
}

TEST_CASE("start_at: no more can come, although others are still at work") {
  const Watchdog watchdog("start_at: others");
  World world;
  test::Gate gate;
  world.hooks["out"] = [&](const Number&, ItemContext*) -> std::optional<ItemError> {
    gate.open();
    return {};
  };
  world.hooks["other"] = [&](const Number&, ItemContext*) -> std::optional<ItemError> {
    gate.wait();
    return {};
  };
  const Outcomes o =
      test::run(two_threads(3, {{"queue", "50"}, {"start_at", "1"}})
                    .node("other", "keep", "a", {{"own_threads", "true"}, {"concurrency", "1"}}),
                world);
  CHECK(o.report.counts.ok == 3);
}

TEST_CASE("start_at: where memory keeps further items out, a node begins with what there is") {
  const Watchdog watchdog("start_at: memory");
  for (int workers : {1, 2}) {
    World world;
    const Outcomes o = test::run(two_threads(100, {{"queue", "50"}, {"start_at", "1"}})
                                     .set("a", "size", "100")
                                     .memory(599)
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 100);
    CHECK(edge_to(o.report, "out").start_depth >= 1);
    CHECK(edge_to(o.report, "out").start_depth <= 5);
  }
}

TEST_CASE("start_at: one behind the other, with batches, blocks and a fan-out") {
  const Watchdog watchdog("start_at: everywhere");
  for (const std::size_t memory : {std::size_t{1200}, std::size_t{2500}, std::size_t{100000}}) {
    for (const char* queue : {"1", "7", "auto"}) {
      CAPTURE(memory);
      CAPTURE(queue);
      World world;
      Graph g = Graph()
                    .node("files", "numbers", "", {{"items", "120"}})
                    .node("a", "step", "files", {{"size", "50"}})
                    .node("cut", "expand", "a", {{"blocks", "6"}, {"size", "200"}})
                    .node("sum", "running", "cut", {{"size", "200"}})
                    .node("g", "gather", "sum", {{"batch", "5"}, {"size", "0"}})
                    .node("m", "batch_step", "g")
                    .node("out", "batch_keep", "m", {{"ordered", "true"}})
                    .node("out2", "keep", "sum", {{"ordered", "true"}})
                    .memory(memory)
                    .workers(2);
      for (const char* node : {"a", "cut", "sum", "g", "m", "out", "out2"})
        g.set(node, "queue", queue).set(node, "start_at", "1");
      const Outcomes o = test::run(g, world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == 120);
    }
  }
}

TEST_CASE("start_at: a stop or an error while a node waits ends the run") {
  const Watchdog watchdog("start_at: endings");
  for (const bool breaks : {false, true}) {
    CAPTURE(breaks);
    World world;
    world.check_edges = false;
    Runner* self = nullptr;
    world.hooks["a"] = [&](const Number& n, ItemContext*) -> std::optional<ItemError> {
      if (n.item != 4) return {};
      if (breaks) throw RunError("the end");
      self->stop();
      return {};
    };
    Outcomes o;
    {
      Runner runner(
          test::make_plan(two_threads(1000, {{"queue", "500"}, {"start_at", "1"}}), world));
      self = &runner;
      o.report = runner.run();
      o.remarks = runner.remarks();
    }
    test::check_run(o, world);
    CHECK(world.live.now() == 0);
    CHECK(o.report.ending == (breaks ? Ending::failed : Ending::stopped));
    CHECK(o.report.counts.not_run > 0);
    if (!breaks) CHECK(o.report.counts.ok >= 5);
  }
}

TEST_CASE("start_at: items that fail while the node waits are let go") {
  const Watchdog watchdog("start_at: failing");
  World world;
  world.check_edges = false;
  // The other branch fails every item that waits here.
  world.hooks["bad"] = [](const Number&, ItemContext*) -> std::optional<ItemError> {
    return ItemError::failed("not good");
  };
  const Outcomes o = test::run(Graph()
                                   .node("files", "numbers", "", {{"items", "90"}})
                                   .node("a", "step", "files")
                                   .node("out", "keep", "a", {{"queue", "20"}, {"start_at", "1"}})
                                   .node("bad", "keep", "a")
                                   .workers(2),
                               world);
  CHECK(o.report.error.starts_with("all files failed (90) by "));
  CHECK(o.report.counts.failed == 90);
}

}  // namespace queue_test
