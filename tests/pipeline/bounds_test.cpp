// Both bounds hold: never more than `concurrency` in a stage and `queue` before it, never more
// bytes than the budget; and neither bound ever stops a run for good.
#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace melflow::test::bounds_test {
namespace {

// Holds threads until `count` of them have come at the same time; then lets all pass, for ever.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  void arrive() {
    std::unique_lock lock(mutex_);
    if (--missing_ <= 0) wake_.notify_all();
    wake_.wait(lock, [this] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  int missing_;
};

World::Hook meet(Meeting& meeting) {
  return [&](const Number&, ItemContext*) -> std::optional<ItemError> {
    meeting.arrive();
    return {};
  };
}

Graph full_chain() {
  return Graph(
      "files: numbers items=150; a: step < files; "
      "cut: expand < a blocks=6; sum: running < cut; "
      "g: gather < sum batch=5; m: batch_step < g; "
      "out: batch_keep < m ordered=true");
}

}  // namespace

TEST_CASE("bounds: a stage really runs as many items at once as it may, and not one more") {
  const Watchdog watchdog("bounds: concurrency reached");
  // The size of the last queue is `auto`: it must not be smaller than the number of items that the
  // stage before can have in flight.
  for (const bool own_threads : {false, true}) {
    CAPTURE(own_threads);
    World world;
    Meeting meeting(3);  // hangs unless three are inside at the same time
    world.hooks["a"] = meet(meeting);
    const Outcomes o =
        test::run(Graph("files: numbers items=100")
                      .node("a", "step", "files",
                            {{"concurrency", "3"}, {"own_threads", own_threads ? "true" : "false"}})
                      .node("out", "keep", "a")
                      .workers(own_threads ? 1 : 4),
                  world);
    CHECK(world.log("a").probe.peak() == 3);
    CHECK(stage(o.report, "a").peak_concurrency == 3);
  }
}

TEST_CASE("bounds: stages that wait for a device run on dedicated threads, beside the workers") {
  const Watchdog watchdog("bounds: dedicated threads");
  // One worker must make the fourth item while three wait for it.
  World world;
  Meeting meeting(4);
  world.hooks["wait"] = meet(meeting);
  const Outcomes o = test::run(Graph("files: numbers items=50 own_threads=true; "
                                     "a: step < files concurrency=1 queue=1; "
                                     "wait: step < a concurrency=4 queue=3 own_threads=true; "
                                     "out: keep < wait own_threads=true concurrency=2")
                                   .workers(1),
                               world);
  CHECK(o.report.counts.ok == 50);
  CHECK(world.log("wait").probe.peak() == 4);
}

TEST_CASE(
    "bounds: an engine has as many items under way as it has slots, and their order stays free") {
  const Watchdog watchdog("bounds: engine");
  World world;
  // Hangs unless there are five together.
  const Outcomes o = test::run(Graph("files: numbers items=200; "
                                     "a: step < files concurrency=5 elsewhere=true fills=true; "
                                     "out: keep < a")
                                   .workers(2),
                               world);
  CHECK(o.report.ending == Ending::complete);
  CHECK(o.report.counts.ok == 200);
  CHECK(stage(o.report, "a").peak_concurrency == 5);
  CHECK(stage(o.report, "a").items_out == 200);
}

TEST_CASE("bounds: what an engine does not begin fails, and what breaks the run ends it") {
  const Watchdog watchdog("bounds: engine errors");
  for (const bool breaks : {false, true}) {
    CAPTURE(breaks);
    World world;
    world.check_edges = false;
    world.hooks["a"] = [breaks](const Number& n, ItemContext*) -> std::optional<ItemError> {
      if (n.item % 10 == 3 && breaks) throw RunError("the device is gone");
      if (n.item % 10 == 3) throw std::runtime_error("not begun");
      if (n.item % 10 == 4) return ItemError::skipped("not wanted");
      return {};
    };
    const Outcomes o = test::run(Graph("files: numbers items=100; "
                                       "a: step < files concurrency=5 elsewhere=true; "
                                       "out: keep < a")
                                     .workers(2),
                                 world);
    const Ledger::Counts& c = o.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == 100);
    if (breaks) {
      CHECK(o.report.ending == Ending::failed);
      CHECK(o.report.error == "the device is gone");
    } else {
      CHECK(o.report.ending == Ending::complete);
      CHECK(c.ok == 80);
      CHECK(c.failed == 10);
      CHECK(c.skipped == 10);
    }
  }
}

TEST_CASE("bounds: blocks of an item come to a sink in order, unless it says that they need not") {
  const Watchdog watchdog("bounds: order in a sink");
  for (const bool any_order : {false, true}) {
    CAPTURE(any_order);
    World world;
    std::mutex mutex;
    int last = -1, inside = 0, together = 0;
    std::condition_variable met;
    world.hooks["out"] = [&](const Number& n, ItemContext*) -> std::optional<ItemError> {
      std::unique_lock lock(mutex);
      together = std::max(together, ++inside);
      if (!any_order) CHECK(n.block == last + 1);
      last = n.block;
      met.notify_all();
      // The first waits until another one is there, which never happens if they come in order.
      if (any_order && n.block == 0) met.wait(lock, [&] { return together > 1; });
      --inside;
      return {};
    };
    const Outcomes o =
        test::run(Graph("files: numbers items=1; cut: expand < files blocks=900")
                      .node("out", "keep", "cut",
                            {{"concurrency", "4"}, {"any_order", any_order ? "true" : "false"}})
                      .workers(4),
                  world);
    CHECK(o.report.counts.ok == 1);
    CHECK((together > 1) == any_order);
  }
}

TEST_CASE("bounds: blocks of one item run side by side only where the stage says that they may") {
  const Watchdog watchdog("bounds: order");
  const auto graph = [](bool any_order) {
    return Graph("files: numbers items=1; cut: expand < files blocks=900")
        .node("a", "step", "cut",
              {{"concurrency", "4"}, {"any_order", any_order ? "true" : "false"}})
        .node("out", "keep", "a", {{"any_order", any_order ? "true" : "false"}})
        .workers(3);
  };
  REQUIRE(test::block_count(0, 900) > 10);
  World together;
  Meeting meeting(2);
  together.hooks["a"] = meet(meeting);
  CHECK(test::run(graph(true), together).report.counts.ok == 1);
  CHECK(together.log("a").probe.peak() >= 2);

  World one_by_one;
  int last = -1;  // not guarded: no other thread is inside
  one_by_one.hooks["a"] = on_item([&](const Number& n) {
    CHECK(n.block == last + 1);
    last = n.block;
  });
  CHECK(test::run(graph(false), one_by_one).report.counts.ok == 1);
  CHECK(one_by_one.log("a").probe.peak() == 1);
}

TEST_CASE("bounds: of items in many blocks the oldest goes on first, so that it is soon complete") {
  const Watchdog watchdog("bounds: oldest first");
  World world;
  std::vector<std::size_t> came;  // not guarded: there is one worker
  world.hooks["out"] = on_item([&](const Number& n) { came.push_back(n.item); });
  const Outcomes o = test::run(Graph("files: numbers items=20; cut: expand < files blocks=900; "
                                     "out: keep < cut")
                                   .workers(1),
                               world);
  CHECK(o.report.counts.ok == 20);
  const auto first = static_cast<std::size_t>(test::block_count(0, 900));
  REQUIRE(first > 100);
  const auto last = std::find(came.rbegin(), came.rend(), 0U).base() - came.begin();
  // The other items begin meanwhile, with a block or two.
  CHECK(static_cast<std::size_t>(last) < first + 40);
}

TEST_CASE("bounds: an item in many blocks is complete long before the items behind it have begun") {
  const Watchdog watchdog("bounds: one long item");
  World world;
  std::size_t long_one = 0;
  while (test::block_count(long_one, 40) < 20) ++long_one;
  std::vector<std::size_t> came;  // not guarded: there is one worker
  world.hooks["out"] = [&](const Number& n, ItemContext*) -> std::optional<ItemError> {
    came.push_back(n.item);
    return {};
  };
  const Outcomes o = test::run(Graph()
                                   .node("files", "numbers", "", {{"items", "2000"}})
                                   .node("cut", "expand", "files", {{"blocks", "40"}})
                                   .node("out", "keep", "cut")
                                   .workers(1),
                               world);
  CHECK(o.report.counts.ok == 2000);
  const auto last = std::find(came.rbegin(), came.rend(), long_one).base();
  CHECK(std::set<std::size_t>(came.begin(), last).size() < long_one + 100);
}

TEST_CASE("bounds: a queue fills up to its capacity and no further") {
  const Watchdog watchdog("bounds: queue");
  for (int queue : {1, 2, 5}) {
    CAPTURE(queue);
    World world;
    test::Gate gate;
    // The sink waits until the stage before it has emitted one item for the sink and one per slot.
    world.hooks["out"] = on_item([&](const Number&) { gate.wait(); });
    world.hooks["a"] = on_item([&](const Number& n) {
      if (n.item == static_cast<std::size_t>(queue)) gate.open();
    });
    const Outcomes o = test::run(
        Graph("files: numbers items=100; a: step < files concurrency=1")
            .node("out", "keep", "a",
                  {{"queue", std::to_string(queue)}, {"concurrency", "1"}, {"own_threads", "true"}})
            .workers(2),
        world);
    CHECK(edge_to(o.report, "out").capacity == queue);
    CHECK(edge_to(o.report, "out").max_depth <= static_cast<std::size_t>(queue));
    CHECK(edge_to(o.report, "out").max_depth >= 1);
    CHECK(edge_to(o.report, "out").mean_depth > 0);
  }
}

TEST_CASE("bounds: the slowest branch of a fan-out holds back the stage before it") {
  const Watchdog watchdog("bounds: fan-out");
  World world;
  test::Gate gate;
  world.hooks["slow"] = on_item([&](const Number&) { gate.wait(); });
  std::atomic<int> fast{0};
  world.hooks["fast"] = on_item([&](const Number&) {
    // One in the slow sink, two before it: the fast branch gets three, then everything waits.
    if (++fast == 3) gate.open();
  });
  const Outcomes o = test::run(Graph("files: numbers items=80; a: step < files concurrency=1; "
                                     "slow: keep < a queue=2 concurrency=1 own_threads=true; "
                                     "fast: keep < a queue=50")
                                   .workers(2),
                               world);
  CHECK(o.report.counts.ok == 80);
}

TEST_CASE("bounds: every stage at concurrency 1 and queue 1, with every number of workers") {
  const Watchdog watchdog("bounds: one of everything");
  for (int workers : {1, 2, 3, 8}) {
    for (std::size_t memory : {std::size_t{1000}, std::size_t{1500}, std::size_t{100000}}) {
      CAPTURE(workers);
      CAPTURE(memory);
      World world;
      Graph g = full_chain().workers(workers).memory(memory);
      for (const char* node : {"a", "cut", "sum", "g", "m", "out"})
        g.set(node, "concurrency", "1").set(node, "queue", "1");
      const Outcomes o = test::run(g, world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == 150);
      for (const StageReport& s : o.report.stages) CHECK(s.peak_concurrency == 1);
    }
  }
}

// ---- memory -----------------------------------------------------------------------------------

TEST_CASE("bounds: exactly the smallest budget carries items of any number of blocks") {
  const Watchdog watchdog("bounds: smallest budget");
  for (int workers : {1, 2, 3}) {
    for (const bool batches : {false, true}) {
      for (const bool ordered : {false, true}) {
        CAPTURE(workers);
        CAPTURE(batches);
        CAPTURE(ordered);
        World world;
        Graph g = Graph(
            "files: numbers items=12; a: step < files size=50; "
            "cut: expand < a blocks=300 size=200; "
            "sum: running < cut size=250");
        if (batches)
          g.nodes("g: gather < sum batch=8 size=0; out: batch_keep < g");
        else
          g.node("out", "keep", "sum");
        g.set("out", "ordered", ordered ? "true" : "false").memory(1000).workers(workers);
        const Outcomes o = test::run(g, world);
        CHECK(o.report.counts.ok == 12);
        CHECK(o.report.memory_peak == 1000);
        CHECK(o.report.memory_wait_seconds > 0);
        std::size_t rows = 0;
        for (std::size_t i = 0; i < 12; ++i)
          rows += static_cast<std::size_t>(test::block_count(i, 300));
        CHECK(world.rows("out").size() == rows);
      }
    }
  }
}

TEST_CASE("bounds: a batch larger than the budget allows goes as far as it is filled") {
  const Watchdog watchdog("bounds: flush");
  for (int workers : {1, 2, 3}) {
    World world;
    const Outcomes o = test::run(Graph("files: numbers items=200; a: step < files; "
                                       "g: gather < a batch=64 size=0; out: batch_keep < g")
                                     .memory(1000)  // ten items at once
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 200);
    CHECK(stage(o.report, "g").items_out >= 20);
    CHECK(o.report.memory_peak <= 1000);
  }
}

TEST_CASE("bounds: every payload is covered by the budget, from its making to its end") {
  const Watchdog watchdog("bounds: live bytes");
  for (int workers : {1, 2, 3}) {
    for (std::size_t memory : {2000, 3000, 5000}) {
      World world;
      const Outcomes o = test::run(Graph("files: numbers items=300; "
                                         "a: step < files size=400 concurrency=3; "
                                         "cut: expand < a size=300 blocks=3; "
                                         "b: step < cut size=300 concurrency=3; "
                                         "out: keep < b ordered=true")
                                       .memory(memory)
                                       .workers(workers),
                                   world);
      CHECK(o.report.counts.ok == 300);
      CHECK(world.live.peak() <= memory);  // also checked by check_run
      CHECK(world.live.peak() > 0);
    }
  }
}

TEST_CASE("bounds: a long item that waits for memory does not keep the oldest one out") {
  const Watchdog watchdog("bounds: overtaking");
  // Items 1 and 2 overtake item 0 and are cut into blocks until their share of the memory is used
  // up; their blocks are parked in the sink until item 0 is closed, which comes after them.
  for (int queue : {1, 4}) {
    for (int concurrency : {1, 2}) {
      CAPTURE(queue);
      CAPTURE(concurrency);
      World world;
      test::Gate gate;
      std::atomic<int> parked{0};
      world.hooks["a"] = on_item([&](const Number& n) {
        if (n.item == 0) gate.wait();
      });
      // 300 bytes per block and 3000 in all, 900 of them for the oldest only: seven blocks for the
      // others and the one that item 0 holds. So items 1 and 2 get four beside their first ones.
      world.hooks["out"] = on_item([&](const Number& n) {
        if (n.item > 0 && ++parked == 5) gate.open();
      });
      const Outcomes o = test::run(Graph("files: numbers items=3; "
                                         "a: step < files concurrency=3 own_threads=true queue=3; "
                                         "b: step < a concurrency=1 queue=3")
                                       .node("cut", "expand", "b",
                                             {{"blocks", "900"},
                                              {"concurrency", std::to_string(concurrency)},
                                              {"queue", std::to_string(queue)}})
                                       .node("out", "keep", "cut", {{"ordered", "true"}})
                                       .memory(3000)
                                       .workers(2),
                                   world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == 3);
    }
  }
}

TEST_CASE("bounds: items as large as the whole budget pass one by one") {
  const Watchdog watchdog("bounds: one at a time");
  World world;
  const Outcomes o = test::run(Graph("files: numbers items=100; a: step < files size=1000; "
                                     "out: keep < a ordered=true")
                                   .memory(1000)
                                   .workers(3),
                               world);
  CHECK(o.report.counts.ok == 100);
  CHECK(o.report.memory_peak == 1000);
  CHECK(stage(o.report, "a").peak_concurrency == 1);
}

}  // namespace melflow::test::bounds_test
