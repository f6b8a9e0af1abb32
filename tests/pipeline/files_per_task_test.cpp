// Small files that pass through the graph together: each is still handled as a file of its own,
// whatever happens to the others of its task.
#include <doctest/doctest.h>

#include <latch>
#include <mutex>

#include "tests/pipeline/files_per_task.h"
#include "tests/support/printing.h"
#include "tests/support/watchdog.h"

namespace melflow::test::files_per_task_test {

TEST_CASE("files per task: so many go together, in order, and the last task has what is left") {
  const Watchdog watchdog("files per task: together");
  World world;
  // The source's node is asked once per task, and so is the budget: with a budget of one task,
  // nothing is made before the previous task is through.
  std::vector<std::size_t> order;
  world.hooks["a"] = on_item([&](const Number& n) { order.push_back(n.item); });
  const Outcomes o = test::run(together(10, "4", {{"concurrency", "1"}}).workers(1), world);
  CHECK(order == all_but(10, {}));
  CHECK(o.report.counts.ok == 10);
  CHECK(stage(o.report, "files").items_out == 10);
  CHECK(stage(o.report, "a").items_in == 10);
  CHECK(stage(o.report, "a").items_out == 10);
  CHECK(stage(o.report, "out").items_in == 10);
  // At most three tasks were in the queue.
  CHECK(test::edge_to(o.report, "a").max_depth <= 3);
  CHECK(items(world) == all_but(10, {}));
}

TEST_CASE("files per task: files of one task follow each other, several tasks run at once") {
  const Watchdog watchdog("files per task: at once");
  World world;
  // Each task waits in its second file until the other task is at the same point: with one file per
  // task, or with one task for all, they would never meet.
  std::latch met(2);
  world.hooks["a"] = on_item([&](const Number& n) {
    if (n.item % 2 == 1) met.arrive_and_wait();
  });
  const Outcomes o = test::run(together(4, "2", {{"concurrency", "2"}}).workers(3), world);
  CHECK(o.report.counts.ok == 4);
  CHECK(stage(o.report, "a").peak_concurrency == 2);
}

TEST_CASE("files per task: a bad file fails alone, wherever it does and whatever runs the stage") {
  const Watchdog watchdog("files per task: a bad file");
  struct Case {
    const char* name;
    Graph::Options step;
  };
  for (const Case& c : {Case{"workers", {}}, Case{"dedicated threads", {{"own_threads", "true"}}},
                        Case{"engine", {{"elsewhere", "true"}, {"concurrency", "3"}}}})
    for (const char* files : {"1", "2", "7", "64"})
      for (const std::size_t bad : {0U, 3U, 19U}) {
        CAPTURE(c.name);
        CAPTURE(files);
        CAPTURE(bad);
        const std::string who = "item" + std::to_string(bad);
        World world;
        world.check_edges = false;
        world.hooks["a"] = fails(bad, ItemError::failed("no good"));
        const Outcomes o = test::run(together(20, files, c.step).workers(2), world);
        CHECK(o.report.ending == Ending::complete);
        CHECK(o.report.counts.ok == 19);
        CHECK(remarks(o) == Texts{who + " failed a: no good"});
        CHECK(items(world) == all_but(20, {bad}));
        CHECK(stage(o.report, "a").items_in == 20);
        CHECK(stage(o.report, "a").items_out == 19);
      }
}

TEST_CASE("files per task: an exception is the error of its file alone, a warning is its own") {
  const Watchdog watchdog("files per task: exceptions");
  for (const char* option : {"own_threads", "elsewhere", "any_order"}) {
    CAPTURE(option);
    World world;
    world.check_edges = false;
    world.hooks["a"] = [](const Number& n, ItemContext* c) -> std::optional<ItemError> {
      if (n.item == 1) throw std::runtime_error("thrown");
      if (n.item == 2) c->warn("odd");
      if (n.item == 3) return ItemError::skipped("too short");
      return {};
    };
    const Outcomes o = test::run(together(6, "6", {{option, "true"}}).workers(1), world);
    CHECK(remarks(o) == Texts{"item1 failed a: unexpected error: thrown", "item2 ok a: odd",
                              "item3 skipped a: too short"});
    CHECK(items(world) == all_but(6, {1, 3}));
  }
}

TEST_CASE("files per task: engines one behind the other each count what they were given") {
  const Watchdog watchdog("files per task: two engines");
  for (const char* files : {"1", "4"}) {
    CAPTURE(files);
    World world;
    const Outcomes o =
        test::run(Graph()
                      .node("files", "numbers", "", {{"items", "12"}, {"files_per_task", files}})
                      .nodes("a: step < files elsewhere=true concurrency=2; "
                             "b: step < a elsewhere=true concurrency=2; out: keep < b")
                      .workers(2),
                  world);
    for (const char* name : {"a", "b", "out"}) {
      CAPTURE(name);
      CHECK(stage(o.report, name).items_in == 12);
    }
    CHECK(stage(o.report, "b").bytes_in == stage(o.report, "a").bytes_out);
  }
}

TEST_CASE("files per task: a sink that cannot take one file takes the others") {
  const Watchdog watchdog("files per task: sink");
  World world;
  world.hooks["out"] = fails(2, ItemError::failed("disk full of it"));
  const Outcomes o = test::run(together(8, "4").workers(1), world);
  CHECK(remarks(o) == Texts{"item2 failed out: disk full of it"});
  CHECK(items(world) == all_but(8, {2}));
}

TEST_CASE("files per task: all files of a task may fail") {
  const Watchdog watchdog("files per task: all fail");
  for (const char* option : {"own_threads", "elsewhere", "any_order"}) {
    CAPTURE(option);
    World world;
    world.check_edges = false;
    world.hooks["a"] =
        fail_if([](const Number& n) { return n.item / 4 == 1; }, ItemError::failed("all of it"));
    const Outcomes o = test::run(together(12, "4", {{option, "true"}}).workers(2), world);
    CHECK(o.report.counts.failed == 4);
    CHECK(items(world) == all_but(12, {4, 5, 6, 7}));
  }
}

TEST_CASE("files per task: a file that gives several blocks gives them in the middle of a task") {
  const Watchdog watchdog("files per task: blocks");
  for (int workers : test::kWorkers)
    for (const char* files : {"3", "16"}) {
      CAPTURE(workers);
      CAPTURE(files);
      World world;
      const Outcomes o =
          test::run(Graph()
                        .node("files", "numbers", "", {{"items", "40"}, {"files_per_task", files}})
                        .nodes("cut: expand < files blocks=5; sum: running < cut; "
                               "out: keep < sum ordered=true")
                        .workers(workers),
                    world);
      CHECK(o.report.counts.ok == 40);
      std::size_t at = 0;
      const auto& rows = world.rows("out");
      for (std::size_t i = 0; i < 40; ++i)
        for (int b = 0; b < test::block_count(i, 5); ++b, ++at) {
          REQUIRE(at < rows.size());
          CHECK(rows[at].item == i);
          CHECK(rows[at].block == b);
        }
      CHECK(at == rows.size());
      CHECK(stage(o.report, "cut").items_in == 40);
      CHECK(stage(o.report, "cut").items_out == at);
    }
}

TEST_CASE("files per task: what fails between two of its blocks leaves the next file as it is") {
  const Watchdog watchdog("files per task: fails between blocks");
  // The first block of the first file with two blocks fails downstream: before the second block is
  // made, or while it is, whatever the timing.
  std::size_t bad = 0;
  while (test::block_count(bad, 3) == 1) ++bad;
  const auto count = static_cast<int>(bad + 5);
  for (int workers : test::kWorkers)
    for (int round = 0; round < 10; ++round) {
      CAPTURE(workers);
      World world;
      world.check_edges = false;
      std::mutex mutex;
      std::set<std::size_t> begun;
      world.hooks["look"] = [&](const Number& n, ItemContext* c) -> std::optional<ItemError> {
        if (n.item == bad) return ItemError::failed("no good");
        const std::lock_guard lock(mutex);
        // Only its first block has the mark.
        if (c->origin().first != (n.block == 0)) world.complain("a first mark at a wrong block");
        begun.insert(n.item);
        return {};
      };
      const Outcomes o = test::run(
          Graph()
              .node("files", "numbers", "",
                    {{"items", std::to_string(count)}, {"files_per_task", std::to_string(count)}})
              .nodes("cut: expand < files blocks=3 concurrency=1; "
                     "look: step < cut; out: keep < look")
              .workers(workers),
          world);
      CHECK(remarks(o) == Texts{"item" + std::to_string(bad) + " failed look: no good"});
      CHECK(items(world) == all_but(static_cast<std::size_t>(count), {bad}));
    }
}

TEST_CASE("files per task: an error between blocks is that of its file alone") {
  const Watchdog watchdog("files per task: error in a block");
  std::size_t bad = 0;
  while (test::block_count(bad, 3) == 1) ++bad;
  const auto count = bad + 5;
  World world;
  world.check_edges = false;
  world.hooks["cut"] = fail_if([&](const Number& n) { return n.item == bad && n.block == 1; },
                               ItemError::failed("broken off"));
  const Outcomes o = test::run(
      Graph()
          .node("files", "numbers", "",
                {{"items", std::to_string(count)}, {"files_per_task", std::to_string(count)}})
          .nodes("cut: expand < files blocks=3; sum: running < cut; "
                 "out: keep < sum ordered=true")
          .workers(2),
      world);
  CHECK(remarks(o) == Texts{"item" + std::to_string(bad) + " failed cut: broken off"});
  CHECK(items(world) == all_but(count, {bad}));
}

TEST_CASE("files per task: one task may complete several batches") {
  const Watchdog watchdog("files per task: batches");
  for (int workers : test::kWorkers) {
    CAPTURE(workers);
    World world;
    const Outcomes o = test::run(Graph("files: numbers items=23 files_per_task=10; "
                                       "g: gather < files batch=4; m: batch_step < g; "
                                       "out: batch_keep < m ordered=true")
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 23);
    CHECK(stage(o.report, "g").items_in == 23);
    CHECK(stage(o.report, "g").rows_out == 23);
    CHECK(stage(o.report, "g").items_out == 6);  // five full ones and the rest
    CHECK(stage(o.report, "m").items_in == 6);
    CHECK(items(world) == all_but(23, {}));
  }
}

TEST_CASE("files per task: a file that failed before is omitted from the batches of its task") {
  const Watchdog watchdog("files per task: batch with a failed file");
  World world;
  world.check_edges = false;
  world.hooks["m"] = fails(6, ItemError::failed("in the batch"));
  world.hooks["a"] = fails(2, ItemError::failed("before it"));
  const Outcomes o = test::run(Graph("files: numbers items=12 files_per_task=12; "
                                     "a: step < files; g: gather < a batch=4; "
                                     "m: batch_step < g; out: batch_keep < m ordered=true")
                                   .workers(1),
                               world);
  CHECK(remarks(o) == Texts{"item2 failed a: before it", "item6 failed m: in the batch"});
  CHECK(items(world) == all_but(12, {2, 6}));
  CHECK(stage(o.report, "g").items_in == 11);
}

TEST_CASE("files per task: several branches each get the whole task") {
  const Watchdog watchdog("files per task: branches");
  World world;
  const Outcomes o = test::run(Graph("files: numbers items=30 files_per_task=8; "
                                     "a: step < files; x: keep < a; "
                                     "y: keep < a own_threads=true; z: keep < files")
                                   .workers(2),
                               world);
  CHECK(o.report.counts.ok == 30);
  for (const char* sink : {"x", "y", "z"}) CHECK(items(world, sink) == all_but(30, {}));
}

TEST_CASE("files per task: a task takes no more of the budget than leaves room for others") {
  const Watchdog watchdog("files per task: budget");
  // 100 bytes per file; a quarter of each worker's share (and one for the thread that waits).
  for (const std::size_t memory : {100U, 101U, 799U, 800U, 1600U, 100000U}) {
    CAPTURE(memory);
    World world;
    Graph g = together(50, "64").workers(1).memory(memory);
    std::size_t peak = 0;
    world.hooks["a"] = on_item(
        [&](const Number&, ItemContext* c) { peak = std::max(peak, c->run().budget->used()); });
    const Outcomes o = test::run(g.set("a", "size", "100"), world);
    CHECK(o.report.counts.ok == 50);
    CHECK(peak <= memory);
    CHECK(o.report.memory_peak <= memory);
  }
}

}  // namespace melflow::test::files_per_task_test
