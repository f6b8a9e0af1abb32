// Queues keep to their size, and nodes that wait for their queue to fill do not wait for ever.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace melflow::test::queue_test {
namespace {

// Takes an item only when the producer `from` has made `more` beyond it, out of `items`: its queue
// of that size was full.
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

// The state of a consumer's queue when it takes its first item: how many were made before.
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

TEST_CASE("queue: has the places of the plan, all of them, and no more") {
  const Watchdog watchdog("queue: places");
  for (const auto& [queue, places] : {std::pair{"auto", 2}, std::pair{"1", 1}, std::pair{"5", 5}}) {
    CAPTURE(queue);
    World world;
    world.hooks["out"] = when_full(world, places, 600, "a");
    const Outcomes o = test::run(two_threads(600, {{"queue", queue}}), world);
    const EdgeReport& e = edge_to(o.report, "out");
    CHECK(e.capacity == places);
    CHECK(e.max_depth == static_cast<std::size_t>(places));
  }
}

TEST_CASE(
    "queue: behind a route it has only what goes there, so a node that stands stops nobody else") {
  const Watchdog watchdog("queue: route");
  constexpr int kItems = 200;
  for (const char* own_threads : {"false", "true"}) {
    World world;
    int slow = 0;
    for (std::size_t i = 0; i < kItems; ++i) slow += way_of(i, "fork", 2, false) == 0 ? 1 : 0;
    REQUIRE(slow > 50);
    world.check_edges = false;  // outputs are not counted by branch
    // The first item there waits until all items of the other branch are through.
    Gate others;
    std::atomic<int> left{kItems - slow};
    world.hooks["slow"] = on_item([&](const Number&) { others.wait(); });
    world.hooks["fast"] = on_item([&](const Number&) {
      if (--left == 0) others.open();
    });
    const Outcomes o = test::run(
        Graph()
            .node("files", "numbers", "",
                  {{"items", std::to_string(kItems)}, {"files_per_task", "1"}})
            .node("fork", "fork", "files", {{"outputs", "2"}})
            .node("slow", "step", "fork.o0",
                  {{"concurrency", "1"}, {"queue", std::to_string(slow)}, {"own_threads", "true"}})
            .node("fast", "step", "fork.o1", {{"own_threads", own_threads}})
            .nodes("out: keep < slow; out2: keep < fast")
            .workers(2),
        world);
    CHECK(o.report.counts.ok == kItems);
    CHECK(edge_to(o.report, "slow").max_depth <= static_cast<std::size_t>(slow));
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
      Graph g = Graph("files: numbers items=100; a: step < files concurrency=1")
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
  world.hooks["out"] = on_item([&](const Number&) { gate.open(); });
  world.hooks["other"] = on_item([&](const Number&) { gate.wait(); });
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
      Graph g = Graph(
                    "files: numbers items=120; a: step < files size=50; "
                    "cut: expand < a blocks=6 size=200; "
                    "sum: running < cut size=200; "
                    "g: gather < sum batch=5 size=0; m: batch_step < g; "
                    "out: batch_keep < m ordered=true; "
                    "out2: keep < sum ordered=true")
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
  const Outcomes o = test::run(Graph("files: numbers items=90; a: step < files; "
                                     "out: keep < a queue=20 start_at=1; bad: keep < a")
                                   .workers(2),
                               world);
  CHECK(o.report.error.starts_with("all files failed (90) by "));
  CHECK(o.report.counts.failed == 90);
}

}  // namespace melflow::test::queue_test
