// Which files share a task: how many, within which memory, which are omitted, and how a run ends in
// the middle of a task.
#include "pipeline/run/source_feed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "tests/pipeline/files_per_task.h"
#include "tests/support/printing.h"
#include "tests/support/problems.h"
#include "tests/support/watchdog.h"

namespace melflow::test::source_feed_test {

TEST_CASE("files per task: the oldest file gets its memory in the middle of a task, too") {
  const Watchdog watchdog("files per task: the oldest file");
  // A sink that writes in order keeps early items, so that all of the budget but the reserve is
  // used; the oldest file is not the first one of its task.
  for (int workers : test::kWorkers)
    for (const char* files : {"2", "3", "8"})
      for (const std::size_t more : {0U, 1U, 2U, 5U}) {
        CAPTURE(workers);
        CAPTURE(files);
        CAPTURE(more);
        World world;
        const std::size_t task = std::stoul(files);
        const Outcomes o = test::run(
            Graph()
                .node("files", "numbers", "", {{"items", "80"}, {"files_per_task", files}})
                .nodes("cut: expand < files blocks=20 concurrency=8; "
                       "out: keep < cut ordered=true size=0")
                .workers(workers)
                .memory((4 * static_cast<std::size_t>(workers + 1) * task + more) * 100),
            world);
        CHECK(o.report.error == "");
        CHECK(o.report.counts.ok == 80);
      }
}

TEST_CASE("files per task: whatever little memory there is, a run comes to its end") {
  const Watchdog watchdog("files per task: tiny budgets");
  for (int workers : test::kWorkers)
    for (const char* files : {"2", "16", "auto"})
      for (std::size_t memory = 200; memory < 1200; memory += 73) {
        CAPTURE(workers);
        CAPTURE(files);
        CAPTURE(memory);
        World world;
        const Outcomes o = test::run(
            Graph()
                .node("files", "numbers", "", {{"items", "20"}, {"files_per_task", files}})
                .nodes("cut: expand < files blocks=4; "
                       "out: keep < cut ordered=true")
                .workers(workers)
                .memory(memory),
            world);
        CHECK(o.report.error == "");
        CHECK(o.report.counts.ok == 20);
      }
}

TEST_CASE("files per task: a stop leaves what was begun whole and lists the rest") {
  const Watchdog watchdog("files per task: stop");
  for (const char* option : {"own_threads", "elsewhere", "any_order"}) {
    CAPTURE(option);
    World world;
    world.check_edges = false;
    Outcomes o;
    {
      std::optional<Runner> runner;
      world.hooks["a"] = on_item([&](const Number& n) {
        if (n.item == 5) runner->stop();
      });
      runner.emplace(test::make_plan(
          together(40, "4", {{option, "true"}, {"queue", "1"}, {"concurrency", "1"}}).workers(1),
          world));
      o.report = runner->run();
      o.remarks = runner->remarks();
    }
    test::check_run(o, world);
    CHECK(o.report.ending == Ending::stopped);
    CHECK(o.report.counts.failed == 0);
    // The current task continues: none of its files is lost.
    CHECK(o.report.counts.ok >= 8);
    CHECK(o.report.counts.ok % 4 == 0);
    CHECK(items(world).size() == o.report.counts.ok);
    CHECK(o.report.counts.not_run == 40 - o.report.counts.ok);
  }
}

TEST_CASE("files per task: an error of the run drops what is left of its task") {
  const Watchdog watchdog("files per task: abort");
  for (const char* option : {"own_threads", "elsewhere", "any_order"}) {
    CAPTURE(option);
    World world;
    world.check_edges = false;
    std::atomic<int> after{0};
    world.hooks["a"] = on_item([&](const Number& n) {
      if (n.item == 5) throw RunError("the end");
      if (n.item > 5 && n.item < 8) ++after;
    });
    const Outcomes o =
        test::run(together(40, "8", {{option, "true"}, {"concurrency", "1"}}).workers(1), world);
    CHECK(o.report.ending == Ending::failed);
    CHECK(o.report.error == "the end");
    CHECK(after == 0);
    CHECK(o.report.counts.failed == 0);
    CHECK(o.report.counts.not_run + o.report.counts.ok == 40);
    CHECK(items(world).size() == o.report.counts.ok);
  }
}

TEST_CASE("files per task: an error of the run in the source makes nothing of its task") {
  const Watchdog watchdog("files per task: abort in the source");
  World world;
  world.check_edges = false;
  world.hooks["files"] = on_item([&](const Number& n) {
    if (n.item == 5) throw RunError("the end");
  });
  const Outcomes o = test::run(together(40, "4").workers(1), world);
  CHECK(o.report.error == "the end");
  CHECK(world.log("files").started == 6);
  for (std::size_t i : items(world)) CHECK(i < 4);
  CHECK(o.report.counts.not_run + o.report.counts.ok == 40);
}

TEST_CASE(
    "files per task: lines that are closed before the run are passed over, inside a task too") {
  const Watchdog watchdog("files per task: closed records");
  for (const char* files : {"1", "4", "16", "auto"})
    for (const std::set<std::size_t>& closed :
         {std::set<std::size_t>{0}, {29}, {1, 2, 3}, {0, 1, 5, 8, 9, 10, 11, 28, 29}}) {
      CAPTURE(files);
      World world;
      world.on_start["out"] = [&](RunContext& run) {
        for (std::size_t i : closed) run.ledger.close(i, Outcome::ok, -1, "");
      };
      const Outcomes o = test::run(together(30, files).workers(1), world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == 30);
      CHECK(items(world) == all_but(30, closed));
      CHECK(stage(o.report, "files").items_out == 30 - closed.size());
      CHECK(world.log("files").started == static_cast<long>(30 - closed.size()));
    }
}

TEST_CASE("files per task: nothing is made where all lines are closed, or there are no files") {
  const Watchdog watchdog("files per task: nothing to do");
  for (const char* files : {"1", "5", "auto"}) {
    World world;
    world.on_start["out"] = [&](RunContext& run) {
      for (std::size_t i = 0; i < 9; ++i) run.ledger.close(i, Outcome::ok, -1, "");
    };
    CHECK(test::run(together(9, files).workers(2), world).report.counts.ok == 9);
    CHECK(world.log("files").started == 0);
    World empty;
    CHECK(test::run(together(0, files).workers(2), empty).report.counts.found == 0);
  }
}

namespace {

// Counts the files that the source made each time it was asked. A file that had no room in its task
// counts there, though it goes with the next.
class Tasks final : public RunObserver {
 public:
  explicit Tasks(World& world) {
    world.hooks["files"] = on_item([this](const Number&) { ++made_.back(); });
  }
  void enter(int node) noexcept override {
    if (node == 0) made_.push_back(0);
  }
  void leave() noexcept override {}
  std::uint64_t begin(int) noexcept override { return 0; }
  void end(std::uint64_t) noexcept override {}

  std::vector<std::size_t> run(const Graph& graph, World& world) {
    Outcomes o;
    {
      Runner runner(test::make_plan(graph, world), this);
      o.report = runner.run();
    }
    test::check_run(o, world);
    CHECK(o.report.counts.ok == o.report.counts.found);
    return made_;
  }

 private:
  std::vector<std::size_t> made_;
};

}  // namespace

TEST_CASE("files per task: a number is that number until the last task") {
  const Watchdog watchdog("files per task: sizes");
  World world;
  CHECK(Tasks(world).run(together(23, "5").workers(2), world) ==
        std::vector<std::size_t>{5, 5, 5, 5, 3});
}

TEST_CASE("files per task: a number that finds no room is said to, once, with one that does") {
  const Watchdog watchdog("files per task: no room");
  const auto warnings = [](const Graph& graph) {
    World world;
    return test::run(graph, world).report.warnings;
  };
  CHECK(warnings(together(60, "20").workers(2).memory(1 << 20)).empty());
  CHECK(warnings(together(60, "auto").workers(2).memory(6 << 10)).empty());
  CHECK(warnings(together(60, "1").workers(2).memory(6 << 10)).empty());
  const auto told = warnings(together(60, "20").workers(2).memory(6 << 10));
  REQUIRE(told.size() == 1);
  CAPTURE(told[0]);
  const std::string begin =
      "files.files_per_task: 20 files do not find room in a task, which may take 1/12 of "
      "memory.host (6KiB): tasks have at most ";
  REQUIRE(told[0].starts_with(begin));
  const std::string most = std::to_string(std::stoul(told[0].substr(begin.size())));
  CHECK(std::stoul(most) < 20);
  CHECK(warnings(together(60, most).workers(2).memory(6 << 10)).empty());
  CHECK(told[0].ends_with("Write a smaller number, or memory.host: 1MiB for so many"));
}

TEST_CASE("files per task: auto puts small files together, and fewer of them towards the end") {
  const Watchdog watchdog("files per task: auto");
  constexpr std::size_t kFiles = 20'000, kLarge = 256;
  World world;
  // The cost of a file is estimated from the first ones, per byte. These are so large, according to
  // the source, that small files cost next to nothing, however slow the machine is.
  world.file_bytes = [](std::size_t i) { return i < kLarge ? std::size_t{1} << 40 : 0; };
  const auto sizes =
      Tasks(world).run(together(kFiles, "auto").workers(1).memory(std::size_t{1} << 60), world);
  // While nothing is known, each file goes alone.
  for (std::size_t i = 0; i < 16; ++i) CHECK(sizes[i] == 1);
  std::size_t made = 0;
  for (const std::size_t n : sizes) {
    // A task leaves four or more for each worker; one file more may have had no room in it.
    const std::size_t most = std::clamp<std::size_t>((kFiles - made) / 4, 1, 1024);
    CHECK(n <= most + 1);
    // The first small files may be in a task with the last large ones.
    if (made >= 2 * kLarge) CHECK(n + 1 >= most);
    made += n;
  }
  CHECK(made == kFiles);
}

TEST_CASE("files per task: auto leaves files alone that are work enough") {
  const Watchdog watchdog("files per task: auto, dear files");
  World world;
  Tasks tasks(world);
  // Files take at least this long, which exceeds the target time of a task; on a slow machine even
  // longer.
  world.hooks["a"] =
      on_item([](const Number&) { std::this_thread::sleep_for(std::chrono::microseconds(500)); });
  for (const std::size_t n : tasks.run(together(200, "auto").workers(1), world)) CHECK(n <= 2);
}

TEST_CASE("files per task: the number is in the stored settings, auto where it is left open") {
  World world;
  const auto stored = [&](const Graph& g) {
    const Plan plan = build_plan(g.spec, world.registry);
    return plan.settings.config.find("graph")->find("files")->find("files_per_task")->text();
  };
  CHECK(stored(together(1, "12")) == "12");
  CHECK(stored(together(1, "auto")) == "auto");
  CHECK(stored(test::chain(1)) == "auto");
  // The option changes no values of the output.
  const auto settings = [&](const char* files) {
    const Plan plan = build_plan(together(1, files).spec, world.registry);
    return to_json(plan.nodes.back().stage->feature_settings());
  };
  CHECK(settings("12") == settings("auto"));
}

TEST_CASE("files per task: only a source says it, and only what makes sense") {
  World world;
  const auto error = [&](const Graph& g) -> std::string {
    return problems_in([&] { return build_plan(g.spec, world.registry); });
  };
  CHECK(error(together(1, "1")) == "");
  CHECK(error(together(1, "2048")) == "");
  CHECK(error(together(1, "65536")) == "");
  for (const char* files : {"0", "65537", "-1", "many"}) {
    CAPTURE(files);
    const std::string text = error(together(1, files));
    CHECK(text.find("files_per_task") != std::string::npos);
    CHECK(text.find("test.yaml:1:") != std::string::npos);
  }
  CHECK(error(together(1, "0")).find("1 to 65536") != std::string::npos);
  const std::string text = error(together(1, "1", {{"files_per_task", "2"}}));
  CHECK(text.find(
            "a.files_per_task: step is not a source; the source says how many files go together") !=
        std::string::npos);
}

}  // namespace melflow::test::source_feed_test
