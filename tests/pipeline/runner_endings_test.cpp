// How a run ends: errors of the run as a whole, too many failures, a stop.
#include "pipeline/run/runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <set>

#include <fmt/format.h>

#include "tests/pipeline/test_graph.h"
#include "tests/support/watchdog.h"

namespace runner_endings_test {

using namespace melflow;
using namespace melflow::test;

// ---- a run that fails -------------------------------------------------------------------------

TEST_CASE(
    "runner: an error of the run as a whole stops it and says why, with the accounts in order") {
  const Watchdog watchdog("runner: abort");
  struct Case {
    const char* what;
    std::function<void()> raise;
    const char* error;
  };
  const std::vector<Case> cases{
      {"RunError", [] { throw RunError("the disk is full"); }, "the disk is full"},
      {"bad_alloc", [] { throw std::bad_alloc(); }, "out of memory"},
  };
  for (const Case& c : cases) {
    for (const char* where : {"files", "a", "cut", "sum", "g", "m", "out"}) {
      for (int workers : {1, 2, 3}) {
        CAPTURE(std::string(c.what));
        CAPTURE(std::string(where));
        CAPTURE(workers);
        World world;
        world.check_edges = false;
        world.hooks[where] = on_item([&](const Number& n) {
          if (n.item == 37) c.raise();
        });
        Ending told = Ending::complete;
        world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
        const Outcomes o = test::run(Graph("files: numbers items=300; a: step < files work=500; "
                                           "cut: expand < a blocks=5; sum: running < cut work=500; "
                                           "g: gather < sum batch=7; m: batch_step < g; "
                                           "out: batch_keep < m ordered=true")
                                         .memory(20000)
                                         .workers(workers),
                                     world);
        CHECK(o.report.ending == Ending::failed);
        CHECK(told == Ending::failed);
        CHECK(o.report.error.find(c.error) != std::string::npos);
        if (std::string(c.what) == "bad_alloc")
          CHECK(o.report.error.find(where) != std::string::npos);
        CHECK(o.report.counts.failed == 0);
        CHECK(o.report.counts.not_run > 0);
        CHECK(o.report.counts.ok < 60);  // later items may have overtaken it
      }
    }
  }
}

TEST_CASE("runner: an unexpected error of a source names the node") {
  const Watchdog watchdog("runner: unexpected error");
  World world;
  world.check_edges = false;
  world.hooks["files"] = on_item([](const Number& n) {
    if (n.item == 5) throw std::runtime_error("surprise");
  });
  const Outcomes o = test::run(chain(50), world);
  CHECK(o.report.ending == Ending::failed);
  CHECK(o.report.error == "files: unexpected error: surprise");
}

TEST_CASE("runner: what a batch cannot take fails alone, and what it cannot give fails its items") {
  const Watchdog watchdog("runner: errors of a batch");
  struct Row {
    const char* what;
    World::Hook push;
    World::Pull pull;  // for the batch that contains item 4
    bool of_all;       // whether the outcome applies to all items of the batch
    const char* remark;
  };
  using Error = std::optional<ItemError>;
  const Row rows[] = {
      {"throws for an item",
       [](const Number& n, ItemContext*) -> Error {
         if (n.item == 4) throw std::runtime_error("surprise");
         return {};
       },
       {},
       false,
       "failed g unexpected error: surprise"},
      {"skips one",
       [](const Number& n, ItemContext*) {
         return n.item == 4 ? Error(ItemError::skipped("too short")) : Error();
       },
       {},
       false,
       "skipped g too short"},
      {"warnings about one",
       [](const Number& n, ItemContext* context) {
         if (n.item == 4) context->warn("odd");
         return Error();
       },
       {},
       false,
       "ok g odd"},
      {"throws for a batch",
       {},
       [](const test::Batch&, ItemContext&) -> Error { throw std::runtime_error("surprise"); },
       true,
       "failed g unexpected error: surprise"},
      {"gives none",
       {},
       [](const test::Batch&, ItemContext&) { return Error(ItemError::failed("too large")); },
       true,
       "failed g too large"},
      {"fails one of a batch",
       {},
       [](const test::Batch& batch, ItemContext& context) {
         for (std::size_t i = 0; i < batch.parts.size(); ++i)
           if (batch.parts[i]->item == 4) context.fail(i, ItemError::failed("odd one"));
         return Error();
       },
       false,
       "failed g odd one"},
  };
  for (const Row& row : rows) {
    for (const int workers : test::kWorkers) {
      CAPTURE(std::string(row.what));
      CAPTURE(workers);
      World world;
      world.check_edges = false;
      if (row.push) world.hooks["g"] = row.push;
      std::set<std::size_t> of{4};
      if (row.pull)
        world.on_pull["g"] = [&](const test::Batch& batch, ItemContext& context) {
          const auto& parts = batch.parts;
          if (std::none_of(parts.begin(), parts.end(), [](const auto& n) { return n->item == 4; }))
            return Error();
          for (const auto& n : parts)
            if (row.of_all) of.insert(n->item);
          return row.pull(batch, context);
        };
      const Outcomes o = test::run(Graph("files: numbers items=50; g: gather < files; "
                                         "out: batch_keep < g ordered=true")
                                       .workers(workers),
                                   world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(of.size() == (row.of_all ? 4 : 1));
      std::vector<std::string> remarks, expected;
      for (const Remark& m : o.remarks)
        remarks.push_back(fmt::format("{} {} {} {}", m.name, melflow::to_text(m.entry.outcome),
                                      m.entry.stage, m.entry.reason));
      for (const std::size_t i : of) expected.push_back(fmt::format("item{} {}", i, row.remark));
      CHECK(remarks == expected);
      CHECK(world.rows("out").size() == o.report.counts.ok);
    }
  }
}

TEST_CASE("runner: a stage that cannot start ends the run before it begins") {
  World world;
  world.on_start["out"] = [](RunContext&) { throw RunError("no such folder"); };
  Runner runner(test::make_plan(chain(10), world));
  CHECK_THROWS_WITH_AS(runner.run(), "no such folder", RunError);
  CHECK(world.log("a").started == 0);
}

TEST_CASE(
    "runner: a stage that cannot finish makes the run a failed one, and the rest still finish") {
  const Watchdog watchdog("runner: finish");
  World world;
  std::vector<std::pair<std::string, Ending>> finished;
  world.on_finish["a"] = [&](RunContext&, Ending e) {
    finished.emplace_back("a", e);
    throw RunError("cannot rename");
  };
  world.on_finish["out"] = [&](RunContext&, Ending e) { finished.emplace_back("out", e); };
  const Outcomes o = test::run(chain(10), world);
  CHECK(o.report.ending == Ending::failed);
  CHECK(o.report.error == "cannot rename");
  CHECK(finished == std::vector<std::pair<std::string, Ending>>{{"a", Ending::complete},
                                                                {"out", Ending::failed}});
  CHECK(o.report.counts.ok == 10);
}

TEST_CASE("runner: a run of which no item is ok has failed, and its sinks know") {
  const Watchdog watchdog("runner: none ok");
  struct Case {
    std::size_t skipped;  // of 50 items
    std::string error;    // beginning of the error
  };
  for (const Case& c :
       {Case{
            0,
            "all files failed (50) by b: bad; correct the pipeline or the files, and run it again; "
            "nothing is written, "},
        Case{20,
             "no file is ok: 30 failed (by b: bad), 20 skipped (by b: short); change the files, or "
             "the "
             "options of b; nothing is written, "},
        Case{49, "no file is ok: 1 failed (by b: bad), 49 skipped (by b: short); "},
        Case{50,
             "all files were skipped (50) by b: short; change the files, or the options "
             "of b; nothing is written, "}})
    for (const int workers : kWorkers) {
      CAPTURE(c.skipped);
      CAPTURE(workers);
      World world;
      world.check_edges = false;
      world.hooks["b"] = [&](const Number& n, ItemContext*) -> std::optional<ItemError> {
        return n.item < c.skipped ? ItemError::skipped("short") : ItemError::failed("bad");
      };
      Ending told = Ending::stopped;
      world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
      const Outcomes o = test::run(chain(50).workers(workers), world);
      CHECK(o.report.ending == Ending::failed);
      CHECK(told == Ending::failed);
      CHECK(o.report.error.starts_with(c.error));
    }
}

TEST_CASE("runner: too many failures end the run: more than the count, more than the share") {
  const Watchdog watchdog("runner: max_failures");
  struct Case {
    const char* limit;
    int every;
    bool stopped;
  };
  // Of 200 items every tenth fails: 20.
  for (const Case& c : {Case{"19", 10, true},
                        {"20", 10, false},
                        {"0", 10, true},
                        {"9%", 10, true},
                        {"10%", 10, false},
                        {"0%", 10, true},
                        {"0", 1000, true},  // only the first item
                        {"100%", 2, false}}) {
    for (int workers : kWorkers) {
      CAPTURE(std::string(c.limit));
      CAPTURE(workers);
      World world;
      world.check_edges = false;
      world.hooks["b"] =
          fail_if([&](const Number& n) { return n.item % static_cast<std::size_t>(c.every) == 0; },
                  ItemError::failed("bad"));
      Ending told = Ending::complete;
      world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
      const Outcomes o = test::run(chain(200).workers(workers).max_failures(c.limit), world);
      CHECK(o.report.ending == (c.stopped ? Ending::failed : Ending::complete));
      // The sinks keep finished items, as after a stop.
      CHECK(told == (c.stopped ? Ending::stopped : Ending::complete));
      CHECK((o.report.error.find("max_failures (" + std::string(c.limit) + ")") !=
             std::string::npos) == c.stopped);
      CHECK((o.report.counts.not_run > 0) == (c.stopped && o.report.counts.closed() > 0 &&
                                              o.report.counts.ok + o.report.counts.failed < 200));
    }
  }
}

TEST_CASE("runner: too many failures in one node end the run, those of others do not count") {
  const Watchdog watchdog("runner: max_failures of a node");
  // Of 200 items 20 fail in a, and 10 more in b.
  struct Case {
    const char *in_a, *in_b, *error;
  };
  for (const Case& c :
       {Case{"20", "10", ""}, Case{"10%", "", ""},
        Case{"19", "10", "20 of 200 files failed in a, more than a.max_failures (19) "},
        Case{"", "9", "10 of 200 files failed in b, more than b.max_failures (9) "},
        Case{"", "4.9%", "10 of 200 files failed in b, more than b.max_failures (4.9%) "}})
    for (const int workers : kWorkers) {
      CAPTURE(std::string(c.error));
      CAPTURE(workers);
      World world;
      world.check_edges = false;
      const auto failing = [](std::size_t every, std::size_t rest) {
        return [=](const Number& n, ItemContext*) -> std::optional<ItemError> {
          if (n.item % every == rest) return ItemError::failed("bad");
          return {};
        };
      };
      world.hooks["a"] = failing(10, 0);
      world.hooks["b"] = failing(22, 1);
      Graph graph = chain(200).workers(workers);
      if (*c.in_a != 0) graph.set("a", "max_failures", c.in_a);
      if (*c.in_b != 0) graph.set("b", "max_failures", c.in_b);
      const Outcomes o = test::run(graph, world);
      CHECK(o.report.ending == (*c.error != 0 ? Ending::failed : Ending::complete));
      CHECK_MESSAGE(o.report.error.starts_with(c.error), o.report.error);
      if (*c.error == 0) CHECK(o.report.counts.failed == 30);
    }
}

TEST_CASE("runner: more failures taken over than are allowed end a run before anything is made") {
  const Watchdog watchdog("runner: max_failures before");
  for (const char* limit : {"5", "5%", "6"})
    for (const int workers : kWorkers) {
      CAPTURE(std::string(limit));
      CAPTURE(workers);
      World world;
      world.on_start["out"] = [](RunContext& run) {
        for (std::size_t i = 0; i < 6; ++i) run.ledger.close(10 * i, Outcome::failed, -1, "bad");
      };
      Ending told = Ending::complete;
      world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
      const Outcomes o = test::run(chain(100).workers(workers).max_failures(limit), world);
      CHECK(o.report.counts.failed == 6);
      if (std::string(limit) == "6") {
        CHECK(o.report.ending == Ending::complete);
        continue;
      }
      CHECK(o.report.ending == Ending::failed);
      CHECK(told == Ending::stopped);
      CHECK(o.report.counts.not_run == 94);
      CHECK(world.log("files").started == 0);
      CHECK(o.report.error ==
            "6 of 100 files had failed already, more than max_failures (" + std::string(limit) +
                ") allows; nothing more was computed; raise max_failures and run it again, or "
                "fix or exclude the files first, and all that comes after the first of them is "
                "computed again");
    }
}

TEST_CASE("runner: pieces that sinks keep to the end are let go before any stage finishes") {
  const Watchdog watchdog("runner: kept too long");
  World world;
  world.check_edges = false;
  std::map<std::string, std::optional<Item>> kept;
  for (const std::string sink : {"out", "second"}) {
    world.hooks[sink] = on_item([&, sink](const Number& n, ItemContext* c) {
      if (n.item == 9) kept[sink] = c->item();
    });
    world.on_drop_waiting[sink] = [&, sink] { kept.erase(sink); };
    world.on_finish[sink] = [&](RunContext& run, Ending ending) {
      CHECK(ending == Ending::complete);
      CHECK(run.ledger.counts().ok == 10);
    };
  }
  kept = {{"out", std::nullopt}, {"second", std::nullopt}};
  Outcomes o = test::run(chain(10).node("second", "keep", "b"), world);
  CHECK(kept.empty());
  CHECK(o.report.counts.ok == 10);
  CHECK(o.report.ending == Ending::complete);

  // On every call: the counts do not add up, which is an error of its own.
  World other;
  other.hooks = world.hooks;
  {
    Runner runner(test::make_plan(chain(10), other));
    const RunReport report = runner.run();
    CHECK(report.ending == Ending::failed);
    CHECK(report.error.find("do not balance") != std::string::npos);
    kept.clear();
  }
}

// ---- stopping ---------------------------------------------------------------------------------

TEST_CASE("runner: stop() before the run takes nothing") {
  const Watchdog watchdog("runner: stop before");
  for (int workers : kWorkers) {
    World world;
    Runner runner(test::make_plan(chain(50).workers(workers), world));
    runner.stop();
    const Outcomes o{runner.run(), runner.remarks()};
    test::check_run(o, world);
    CHECK(o.report.ending == Ending::stopped);
    CHECK(o.report.counts.not_run == 50);
  }
}

TEST_CASE("runner: stop() while the stages start, or after the run, is harmless") {
  const Watchdog watchdog("runner: stop around");
  World world;
  Runner* self = nullptr;
  world.on_start["out"] = [&](RunContext&) { self->stop(); };
  Runner runner(test::make_plan(chain(50), world));
  self = &runner;
  const RunReport report = runner.run();
  CHECK(report.ending == Ending::stopped);
  CHECK(report.counts.not_run == 50);
  runner.stop();
}

TEST_CASE("runner: stop() from inside a stage finishes what is under way") {
  const Watchdog watchdog("runner: stop inside");
  for (const char* where : {"files", "a", "b", "out"}) {
    for (int workers : kWorkers) {
      CAPTURE(std::string(where));
      CAPTURE(workers);
      World world;
      Runner* self = nullptr;
      test::Gate stopped;
      // The source waits for the stop, so that the other items cannot all overtake a slow thread.
      world.hooks["files"] = on_item([&](const Number& n) {
        if (n.item == 200) stopped.wait();
      });
      world.hooks[where] = [&, next = world.hooks["files"]](
                               const Number& n, ItemContext* c) -> std::optional<ItemError> {
        if (n.item == 20) {
          self->stop();
          stopped.open();
        }
        return std::string(where) == "files" ? next(n, c) : std::nullopt;
      };
      Ending told = Ending::complete;
      world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
      Runner runner(test::make_plan(chain(500).workers(workers), world));
      self = &runner;
      const Outcomes o{runner.run(), runner.remarks()};
      test::check_run(o, world);
      CHECK(o.report.ending == Ending::stopped);
      CHECK(told == Ending::stopped);
      CHECK(o.report.error.empty());
      CHECK(o.report.counts.failed == 0);
      CHECK(o.report.counts.ok + o.report.counts.not_run == 500);
      CHECK(o.report.counts.ok <= 200);
      CHECK(world.rows("out").size() == o.report.counts.ok);
    }
  }
}

TEST_CASE("runner: a stop that comes after the last item is no stop") {
  const Watchdog watchdog("runner: late stop");
  World world;
  Runner* self = nullptr;
  world.hooks["out"] = on_item([&](const Number& n) {
    if (n.item == 0) self->stop();
  });
  Runner runner(test::make_plan(chain(1), world));
  self = &runner;
  CHECK(runner.run().ending == Ending::complete);
}

TEST_CASE("runner: stop() from the close of an item, and a warning from there, do not hang") {
  const Watchdog watchdog("runner: stop from a listener");
  World world;
  Runner* self = nullptr;
  world.on_start["out"] = [&](RunContext& run) {
    run.ledger.subscribe([&self, &run](std::size_t index, Outcome) {
      run.warn("closed " + std::to_string(index));
      CHECK(self->progress().counts.found == 200);
      if (index == 10) self->stop();
    });
  };
  // Long items wait for memory when the run is stopped.
  Runner runner(test::make_plan(Graph("files: numbers items=200; cut: expand < files blocks=50; "
                                      "out: keep < cut ordered=true")
                                    .memory(1500)
                                    .workers(2),
                                world));
  self = &runner;
  const RunReport report = runner.run();
  CHECK(report.ending == Ending::stopped);
  CHECK(report.warnings.size() == 200);
}

TEST_CASE("runner: a run that is stopped leaves alone what was done before it") {
  const Watchdog watchdog("runner: done before, stopped");
  World world;
  world.on_start["out"] = [](RunContext& run) {
    for (std::size_t i = 0; i < 300; i += 2) run.ledger.close(i, Outcome::ok, -1, "");
  };
  Runner* running = nullptr;
  world.hooks["a"] = on_item([&](const Number&) { running->stop(); });
  Runner runner(test::make_plan(chain(300).workers(2), world));
  running = &runner;
  const RunReport report = runner.run();
  CHECK(report.ending == Ending::stopped);
  CHECK(report.counts.ok >= 150);
  CHECK(report.counts.not_run > 100);
  CHECK(report.counts.ok + report.counts.not_run == 300);
}

}  // namespace runner_endings_test
