// The results of a run: values, blocks, counts.
#include "pipeline/run/runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace runner_test {

using namespace melflow;
using namespace melflow::test;

namespace {

std::vector<test::Row> sorted(std::vector<test::Row> rows) {
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::tie(x.item, x.block) < std::tie(y.item, y.block);
  });
  return rows;
}

}  // namespace

TEST_CASE("runner: every item goes through every stage of a chain once") {
  const Watchdog watchdog("runner: chain");
  for (int workers : kWorkers) {
    CAPTURE(workers);
    World world;
    const Outcomes o = test::run(chain(300).workers(workers), world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.error.empty());
    CHECK(o.report.counts.ok == 300);
    CHECK(o.report.workers == workers);
    CHECK(o.remarks.empty());
    const auto rows = sorted(world.rows("out"));
    REQUIRE(rows.size() == 300);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(rows[i].item == i);
      REQUIRE(rows[i].value == test::stepped(test::stepped(test::first_value(i), "a"), "b"));
    }
    for (const char* name : {"a", "b"}) {
      CHECK(stage(o.report, name).items_in == 300);
      CHECK(stage(o.report, name).items_out == 300);
      CHECK(stage(o.report, name).rows_out == 300);
      CHECK(world.log(name).started == 300);
    }
    CHECK(stage(o.report, "files").items_out == 300);
    CHECK(stage(o.report, "out").items_in == 300);
    CHECK(stage(o.report, "out").items_out == 0);
    CHECK(stage(o.report, "a").bytes_out == stage(o.report, "b").bytes_in);
    CHECK(stage(o.report, "a").bytes_out > 0);
    REQUIRE(o.report.edges.size() == 3);
    CHECK(o.report.edges[1].from == "a");
    CHECK(o.report.edges[1].to == "b");
    CHECK(o.report.resident_peak > 0);
    CHECK(o.report.memory_peak > 0);
  }
}

TEST_CASE("runner: both branches of a fan-out get the same object") {
  const Watchdog watchdog("runner: fan-out");
  World world;
  std::mutex mutex;
  std::map<std::size_t, std::set<const Number*>> seen;
  std::map<std::size_t, int> times;
  const auto look = on_item([&](const Number& n) {
    const std::lock_guard lock(mutex);
    seen[n.item].insert(&n);
    ++times[n.item];
  });
  world.hooks["left"] = look;
  world.hooks["right"] = look;
  world.hooks["direct"] = look;
  const Graph g = Graph(
                      "files: numbers items=200; a: step < files; "
                      "left: step < a; right: step < a queue=1; "
                      "direct: keep < a queue=3; out1: keep < left; "
                      "out2: keep < right")
                      .workers(2);
  const Outcomes o = test::run(g, world);
  CHECK(o.report.counts.ok == 200);
  CHECK(world.rows("out1").size() == 200);
  CHECK(world.rows("out2").size() == 200);
  CHECK(world.rows("direct").size() == 200);
  CHECK(seen.size() == 200);
  // The address of one item's payload may be reused by a later item, never by the same one.
  for (const auto& [item, addresses] : seen) REQUIRE(addresses.size() == 1);
  for (const auto& [item, count] : times) REQUIRE(count == 3);
}

TEST_CASE("runner: an item is ok only when every sink took it") {
  const Watchdog watchdog("runner: every sink");
  World world;
  world.check_edges = false;
  world.hooks["out2"] =
      fail_if([](const Number& n) { return n.item == 7; }, ItemError::failed("no room"));
  const Graph g = Graph(
      "files: numbers items=20; out1: keep < files; "
      "out2: keep < files");
  const Outcomes o = test::run(g, world);
  CHECK(o.report.counts.ok == 19);
  REQUIRE(o.remarks.size() == 1);
  CHECK(o.remarks[0].name == "item7");
  CHECK(o.remarks[0].entry.stage == "out2");
  CHECK(o.remarks[0].entry.reason == "no room");
}

TEST_CASE("runner: an empty source is a complete run of nothing") {
  const Watchdog watchdog("runner: empty");
  for (int workers : kWorkers) {
    World world;
    const Outcomes o = test::run(Graph("files: numbers items=0; a: expand < files; g: gather < a; "
                                       "out: batch_keep < g ordered=true")
                                     .workers(workers),
                                 world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.found == 0);
    CHECK(world.rows("out").empty());
  }
}

TEST_CASE("runner: every item that is not plainly ok is named with its stage and reason") {
  const Watchdog watchdog("runner: accounts");
  for (int workers : kWorkers) {
    CAPTURE(workers);
    World world;
    world.check_edges = false;
    world.hooks["a"] = [](const Number& n, ItemContext* c) -> std::optional<ItemError> {
      switch (n.item % 10) {
        case 1:
          return ItemError::failed("broken");
        case 2:
          return ItemError::skipped("too short");
        case 3:
          throw std::runtime_error("surprise");
        case 4:
          c->warn("odd");
          return {};
        case 6:
          throw 42;  // NOLINT
        default:
          return {};
      }
    };
    world.hooks["b"] =
        fail_if([](const Number& n) { return n.item % 10 == 5; }, ItemError::failed("late"));
    const Outcomes o = test::run(chain(100).workers(workers), world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.found == 100);
    CHECK(o.report.counts.ok == 50);
    CHECK(o.report.counts.warned == 10);
    CHECK(o.report.counts.skipped == 10);
    CHECK(o.report.counts.failed == 40);
    CHECK(world.rows("out").size() == 50);
    REQUIRE(o.remarks.size() == 60);
    const auto check = [&](std::size_t at, Outcome outcome, const std::string& at_stage,
                           const std::string& reason) {
      const Remark& r = o.remarks[at];
      CHECK(r.index == at + 1);
      CHECK(r.name == "item" + std::to_string(at + 1));
      CHECK(r.entry.outcome == outcome);
      CHECK(r.entry.stage == at_stage);
      CHECK(r.entry.reason == reason);
    };
    check(0, Outcome::failed, "a", "broken");
    check(1, Outcome::skipped, "a", "too short");
    check(2, Outcome::failed, "a", "unexpected error: surprise");
    check(3, Outcome::ok, "a", "odd");
    check(4, Outcome::failed, "b", "late");
    check(5, Outcome::failed, "a", "unexpected error");
  }
}

TEST_CASE("runner: blocks of one item come in order, the first and the last are marked") {
  const Watchdog watchdog("runner: blocks");
  for (int workers : kWorkers) {
    World world;
    std::mutex mutex;
    std::map<std::size_t, std::array<int, 2>> marks;
    world.hooks["out"] = on_item([&](const Number& n, ItemContext* c) {
      const std::lock_guard lock(mutex);
      marks[n.item][0] += c->origin().first ? 1 : 0;
      marks[n.item][1] += c->origin().last ? 1 : 0;
      CHECK(c->origin().first == (n.block == 0));
      CHECK(c->origin().last == (n.block + 1 == test::block_count(n.item, 9)));
    });
    const Outcomes o = test::run(Graph("files: numbers items=100; cut: expand < files blocks=9; "
                                       "sum: running < cut concurrency=4; "
                                       "a: step < sum concurrency=4; "
                                       "sum2: running < a concurrency=4; out: keep < sum2")
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 100);
    for (const auto& [item, m] : marks) REQUIRE(m == std::array{1, 1});
    std::size_t expected = 0;
    for (std::size_t i = 0; i < 100; ++i)
      expected += static_cast<std::size_t>(test::block_count(i, 9));
    CHECK(world.rows("out").size() == expected);
  }
}

TEST_CASE("runner: a stage may give nothing for a block that is not the last") {
  const Watchdog watchdog("runner: nothing for a block");
  for (int workers : kWorkers) {
    World world;
    const Outcomes o = test::run(Graph("files: numbers items=60; cut: expand < files blocks=7; "
                                       "thin: thin < cut queue=1; out: keep < thin queue=1")
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 60);
    std::size_t expected = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      const int n = test::block_count(i, 7);
      for (int b = 0; b < n; ++b) expected += b % 2 == 0 || b + 1 == n ? 1 : 0;
    }
    CHECK(world.rows("out").size() == expected);
  }
}

TEST_CASE("runner: a cutting stage may give nothing at first, and in between") {
  const Watchdog watchdog("runner: holes");
  for (int workers : kWorkers) {
    for (std::size_t memory : {std::size_t{300}, std::size_t{1} << 20}) {
      CAPTURE(workers);
      CAPTURE(memory);
      World world;
      const Outcomes o = test::run(Graph("files: numbers items=60; "
                                         "cut: expand < files blocks=9 holes=true size=100; "
                                         "sum: running < cut size=50")  // checks first and order
                                       .node("out", "keep", "sum", {{"ordered", "true"}})
                                       .memory(memory)
                                       .workers(workers),
                                   world);
      CHECK(o.report.counts.ok == 60);
      std::size_t expected = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        const int n = test::block_count(i, 9);
        for (int b = 0; b < n; ++b) expected += b % 3 != 0 || b + 1 == n ? 1 : 0;
      }
      CHECK(world.rows("out").size() == expected);
    }
  }
}

TEST_CASE("runner: a failed block ends its item, whatever of it is under way") {
  const Watchdog watchdog("runner: failed block");
  for (int workers : kWorkers) {
    for (const char* where : {"cut", "sum", "out"}) {
      CAPTURE(workers);
      CAPTURE(std::string(where));
      World world;
      world.check_edges = false;
      world.hooks[where] = fail_if([](const Number& n) { return n.item % 3 == 0 && n.block == 2; },
                                   ItemError::failed("bad block"));
      const Outcomes o = test::run(Graph("files: numbers items=60; cut: expand < files blocks=9; "
                                         "sum: running < cut; out: keep < sum ordered=true")
                                       .memory(2000)
                                       .workers(workers),
                                   world);
      std::size_t failed = 0, rows = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        const int n = test::block_count(i, 9);
        if (i % 3 == 0 && n > 2)
          ++failed;
        else
          rows += static_cast<std::size_t>(n);
      }
      CHECK(o.report.counts.failed == failed);
      CHECK(o.report.counts.ok == 60 - failed);
      CHECK(world.rows("out").size() == rows);
    }
  }
}

TEST_CASE("runner: batches are filled, the last one goes as it is, each part keeps its item") {
  const Watchdog watchdog("runner: batches");
  for (int workers : kWorkers) {
    World world;
    world.check_edges = false;
    world.hooks["m"] =
        fail_if([](const Number& n) { return n.item == 11; }, ItemError::failed("one part"));
    const Outcomes o = test::run(Graph("files: numbers items=103; a: step < files; "
                                       "g: gather < a batch=10; m: batch_step < g; "
                                       "out: batch_keep < m ordered=true")
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 102);
    CHECK(o.report.counts.failed == 1);
    CHECK(stage(o.report, "g").items_out == 11);
    CHECK(stage(o.report, "g").rows_out == 103);
    CHECK(world.rows("out").size() == 102);
  }
}

TEST_CASE("runner: a sink that keeps what comes too early writes in the source's order") {
  const Watchdog watchdog("runner: ordered sink");
  for (int workers : kWorkers) {
    World world;
    const Outcomes o = test::run(Graph("files: numbers items=400; "
                                       "a: step < files work=2000 concurrency=8; "
                                       "out: keep < a ordered=true concurrency=3")
                                     .workers(workers),
                                 world);
    CHECK(o.report.counts.ok == 400);
    REQUIRE(world.rows("out").size() == 400);
    for (std::size_t i = 0; i < 400; ++i) REQUIRE(world.rows("out")[i].item == i);
  }
}

TEST_CASE("runner: progress may be asked for at any time") {
  const Watchdog watchdog("runner: progress");
  World world;
  test::Gate gate;
  std::atomic<int> taken{0};
  world.hooks["out"] = on_item([&](const Number&) {
    if (++taken > 100) gate.wait();
  });
  Runner runner(test::make_plan(
      chain(300, {{"own_threads", "true"}, {"concurrency", "1"}}).workers(2), world));
  CHECK(runner.progress().counts.found == 0);
  std::thread asking([&] {
    Progress last;
    while (last.counts.ok < 100) {
      const Progress p = runner.progress();
      CHECK(p.counts.ok >= last.counts.ok);
      CHECK(p.rows >= last.rows);
      last = p;
      std::this_thread::yield();  // lets the thread run that it waits for
    }
    CHECK(last.counts.found == 300);
    CHECK(last.rows >= 99);  // the last one may still be leaving the sink's node
    CHECK(last.bytes > 0);
    gate.open();
  });
  CHECK(runner.run().counts.ok == 300);
  asking.join();
  CHECK(runner.progress().counts.ok == 300);
}

TEST_CASE("runner: what a stage is busy with is measured, and what it waits for") {
  const Watchdog watchdog("runner: times");
  World world;
  std::atomic<double> inside{0};
  test::Gate gate;
  world.hooks["a"] = on_item([&](const Number& n) {
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> spent{};
    while (spent < std::chrono::microseconds(200)) spent = std::chrono::steady_clock::now() - begin;
    inside = inside + spent.count();
    if (n.item == 5) gate.open();
  });
  world.hooks["out"] = on_item([&](const Number&) {
    gate.wait();  // waits for the fifth item: until then four wait, and the stage before is blocked
  });
  const Outcomes o = test::run(Graph("files: numbers items=30; a: step < files concurrency=1; "
                                     "out: keep < a queue=5 concurrency=1 own_threads=true")
                                   .workers(1),
                               world);
  const StageTime& a = stage(o.report, "a").time;
  CHECK(a.busy >= inside);
  CHECK(a.busy >= 30 * 200e-6);
  // consume() waits until four items are made; the sink's thread may have started late.
  const StageTime& out = stage(o.report, "out").time;
  CHECK(out.busy + out.waiting_core >= 4 * 200e-6);
  CHECK(out.waiting_input >= 200e-6);
  CHECK(out.blocked_output == 0);
  // With one worker, the source is ready but has no worker while `a` has it.
  CHECK(stage(o.report, "files").time.waiting_core + stage(o.report, "files").time.blocked_output >
        0);
}

TEST_CASE("runner: every call of a stage is timed, and the files that stayed longest are named") {
  const Watchdog watchdog("runner: calls");
  for (const char* own_threads : {"false", "true"}) {
    CAPTURE(own_threads);
    World world;
    world.hooks["a"] = on_item([&](const Number& n) {
      const auto begin = std::chrono::steady_clock::now();
      const auto least = std::chrono::milliseconds(n.item == 7 ? 40 : 0);
      while (std::chrono::steady_clock::now() - begin < least) {
      }
    });
    const Outcomes o = test::run(Graph("files: numbers items=30; more: expand < files blocks=3")
                                     .node("a", "step", "more", {{"own_threads", own_threads}})
                                     .node("out", "keep", "a")
                                     .workers(2),
                                 world);
    std::size_t blocks = 0;
    for (std::size_t i = 0; i < 30; ++i)
      blocks += static_cast<std::size_t>(test::block_count(i, 3));
    CHECK(stage(o.report, "files").service.calls == 30);
    CHECK(stage(o.report, "more").service.calls == blocks);
    for (const char* name : {"a", "out"}) {
      CAPTURE(name);
      CHECK(stage(o.report, name).service.calls == blocks);
      CHECK(stage(o.report, name).files_in == 30);
    }
    const StageReport& a = stage(o.report, "a");
    CHECK(a.on_workers == (std::string(own_threads) == "false"));
    CHECK(a.service.greatest >= 0.04);
    CHECK(a.service.greatest <= a.time.busy);
    CHECK(a.service.p50 <= a.service.p99);
    CHECK(a.cpu_seconds > 0);
    CHECK(o.report.usage.cpu_seconds() > 0);
    CHECK(o.report.first_row_seconds > 0);
    CHECK(o.report.first_row_seconds <= o.report.wall_seconds);
    CHECK(o.report.start_seconds + o.report.graph_seconds + o.report.finish_seconds <=
          o.report.wall_seconds + 1e-6);
    REQUIRE(o.report.slowest.size() == 5);
    for (const SlowFile& f : o.report.slowest) CHECK(f.visit.files == 1);
    CHECK(std::any_of(a.slowest.begin(), a.slowest.end(),
                      [](const SlowVisit& v) { return v.index == 7 && v.seconds >= 0.04; }));
    CHECK(std::any_of(o.report.slowest.begin(), o.report.slowest.end(),
                      [](const SlowFile& f) { return f.name == "item7" && f.stage == "a"; }));
  }
}

TEST_CASE("runner: files that travel together are timed together") {
  const Watchdog watchdog("runner: together");
  World world;
  const Outcomes o = test::run(chain(100).set("files", "files_per_task", "10").workers(1), world);
  for (const char* name : {"files", "a", "b", "out"}) {
    CAPTURE(name);
    CHECK(stage(o.report, name).service.calls == 100);
  }
  REQUIRE_FALSE(o.report.slowest.empty());
  for (const SlowFile& f : o.report.slowest) {
    CHECK(f.visit.files == 10);
    CHECK(f.visit.index % 10 == 0);
  }
}

TEST_CASE("runner: a hundred thousand small items take seconds, not minutes") {
  const Watchdog watchdog("runner: many items");
  World world;
  const Outcomes o = test::run(chain(100000, {{"ordered", "true"}}).workers(2), world);
  CHECK(o.report.counts.ok == 100000);
  CHECK(world.rows("out").size() == 100000);
  CHECK(world.rows("out").back().item == 99999);
}

TEST_CASE("runner: items whose lines a stage closes before the run are passed over") {
  const Watchdog watchdog("runner: done before");
  const auto is_done = [](std::size_t item, int what) {
    switch (what) {
      case 0:
        return item % 3 == 0;  // the first, and some in between
      case 1:
        return item >= 150;  // the last
      case 2:
        return item != 200;  // all but one
      default:
        return true;
    }
  };
  for (int what = 0; what < 4; ++what)
    for (int workers : kWorkers) {
      CAPTURE(what);
      CAPTURE(workers);
      World world;
      world.on_start["out"] = [&](RunContext& run) {
        for (std::size_t i = 0; i < 300; ++i)
          if (is_done(i, what)) run.ledger.close(i, Outcome::ok, -1, "");
      };
      const Outcomes o = test::run(chain(300).workers(workers), world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == 300);
      std::set<std::size_t> seen, expected;
      for (const test::Row& r : world.rows("out")) seen.insert(r.item);
      for (std::size_t i = 0; i < 300; ++i)
        if (!is_done(i, what)) expected.insert(i);
      CHECK(seen == expected);
      CHECK(stage(o.report, "a").items_in == expected.size());
    }
}

}  // namespace runner_test
