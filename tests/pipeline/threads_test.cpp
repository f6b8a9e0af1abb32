// With fewer threads than a run wants, it continues with those, or refuses; oneTBB creates none.
#include "pipeline/base/threads.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <tbb/global_control.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/cpu.h"
#include "tests/pipeline/test_graph.h"
#include "tests/pipeline/thread_limit.h"
#include "tests/support/watchdog.h"

namespace melflow::test::threads_test {
namespace {

constexpr int kWorkers = 8;
// Dedicated threads of the nodes below.
constexpr int kOwnThreads = 3, kEngines = 1;

Graph all_kinds() {
  return Graph(
             "files: numbers items=300; "
             "device: step < files own_threads=true concurrency=3; "
             "ring: step < device elsewhere=true concurrency=4; "
             "cut: expand < ring blocks=4; out: keep < cut")
      .workers(kWorkers);
}

std::string problem_of(const Graph& graph, World& world) {
  try {
    test::run(graph, world);
  } catch (const RunError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("threads: a run goes on with the workers it gets, and says so") {
  const Watchdog watchdog("threads: few");
  const int all = kOwnThreads + kEngines + kWorkers - 1;
  for (int count = kOwnThreads + kEngines; count <= all; ++count) {
    CAPTURE(count);
    World world;
    const ThreadLimit limit(count);
    const Outcomes o = test::run(all_kinds(), world);
    CHECK(o.report.ending == Ending::complete);
    CHECK(o.report.counts.ok == 300);
    const int workers = count - kOwnThreads - kEngines + 1;
    CHECK(o.report.workers == workers);
    REQUIRE(o.report.warnings.size() == (count < all ? 1U : 0U));
    if (count == all) continue;
    CHECK(o.report.warnings[0] ==
          std::to_string(workers) +
              " of 8 workers: the system gave no more threads (ulimit -u, pids.max)");
  }
}

TEST_CASE("threads: those of a run are named by their nodes, and cut to what the system allows") {
  const Watchdog watchdog("threads: names");
  World world;
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> names;  // by node
  for (const char* node : {"device", "a_node_with_a_long_name", "out"})
    world.hooks[node] = on_item([&, node](const Number&) {
      std::array<char, 16> name{};
      pthread_getname_np(pthread_self(), name.data(), name.size());
      const std::lock_guard lock(mutex);
      names[node].insert(name.data());
    });
  const std::vector<std::pair<std::string, std::string>> own = {{"own_threads", "true"},
                                                                {"concurrency", "1"}};
  test::run(Graph("files: numbers items=300")
                .node("device", "step", "files", own)
                .node("a_node_with_a_long_name", "step", "device", own)
                .node("out", "keep", "a_node_with_a_long_name")
                .workers(2),
            world);
  std::array<char, 16> caller{};
  pthread_getname_np(pthread_self(), caller.data(), caller.size());
  CHECK(names["device"] == std::set<std::string>{"mf-device-1"});
  CHECK(names["a_node_with_a_long_name"] == std::set<std::string>{"mf-a_node_wit-1"});
  for (const std::string& name : names["out"])
    CHECK((name == caller.data() || name == "mf-worker-1"));
}

TEST_CASE("threads: all of a run are its own, none is oneTBB's") {
  const Watchdog watchdog("threads: own");
  for (const int workers : {1, 2, 8}) {
    CAPTURE(workers);
    World world;
    const ThreadLimit limit(100);
    CHECK(test::run(all_kinds().workers(workers), world).report.counts.ok == 300);
    CHECK(limit.asked() == kOwnThreads + kEngines + workers - 1);
  }
}

TEST_CASE("threads: a run leaves its host the threads that oneTBB may have") {
  const Watchdog watchdog("threads: host");
  using tbb::global_control;
  constexpr auto kMost = global_control::max_allowed_parallelism;
  const auto during_run = [&](const std::function<void()>& first) {
    World world;
    std::size_t seen = 0;
    world.hooks["a"] = [&](const test::Number& n, ItemContext*) -> std::optional<ItemError> {
      if (n.item == 0) first();
      seen = global_control::active_value(kMost);
      return {};
    };
    CHECK(test::run(test::chain(5).workers(1), world).report.counts.ok == 5);
    return seen;
  };
  const std::size_t without = global_control::active_value(kMost);
  CHECK(during_run([] {}) == std::max<std::size_t>(without, 2));
  std::optional<global_control> host;
  CHECK(during_run([&] { host.emplace(kMost, 8); }) == 8);
  CHECK(during_run([] {}) == 8);
  host.reset();
  CHECK(global_control::active_value(kMost) == without);
}

TEST_CASE("threads: without one that a node cannot do without, the run is refused") {
  const Watchdog watchdog("threads: refused");
  struct Row {
    int count;
    const char* who;  ///< nullptr: the run continues, with fewer of the node's own threads
  };
  for (const Row& row : {Row{0, "device"}, Row{1, "ring"}, Row{2, "ring"}, Row{3, "ring"}}) {
    CAPTURE(row.count);
    World world;
    const ThreadLimit limit(row.count);
    CHECK(problem_of(all_kinds(), world) ==
          std::string(row.who) +
              ": cannot start a thread that the run needs; allow this process more of them "
              "(ulimit -u, pids.max of its control group)");
    CHECK(world.live.now() == 0);
  }
  World world;
  const ThreadLimit limit(1);
  Graph g = Graph(
                "files: numbers items=50; "
                "device: step < files own_threads=true concurrency=3; "
                "out: keep < device")
                .workers(2);
  const Outcomes o = test::run(g, world);
  CHECK(o.report.counts.ok == 50);
  CHECK(world.log("device").probe.peak() == 1);
  REQUIRE(o.report.warnings.size() == 2);
  CHECK(o.report.warnings[0].find("1 of 3 threads of device: ") == 0);
  CHECK(o.report.warnings[1].find("1 of 2 workers: ") == 0);
}

TEST_CASE("threads: on_threads shares work among as many as there are, and gives errors back") {
  const Watchdog watchdog("threads: on_threads");
  std::barrier together(3);  // passed only by three threads at the same time
  on_threads(3, [&] { together.arrive_and_wait(); });
  {
    const ThreadLimit limit(1);
    std::atomic<int> next{0}, done{0}, threads{0};
    on_threads(8, [&] {
      ++threads;
      while (next++ < 1000) ++done;
    });
    CHECK(threads == 2);
    CHECK(done == 1000);
  }
  std::atomic<int> left{0};
  CHECK_THROWS_WITH_AS(on_threads(4,
                                  [&] {
                                    if (left++ == 1) throw std::runtime_error("no");
                                  }),
                       "no", std::runtime_error);
  CHECK(left == 4);
}

TEST_CASE("threads: no more workers than the cores can have a use for") {
  World world;
  const Plan plan = test::make_plan(test::chain(5).workers(1024), world);
  CHECK(plan.workers == most_workers());
  CHECK(most_workers() >= available_cpus());
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].str().find("workers: 1024 would only wait for each other") == 0);
  CHECK(test::make_plan(test::chain(5).workers(most_workers()), world).warnings.empty());

  // Reported, but not stored: the same run elsewhere makes the same output.
  World other;
  std::vector<std::string> stored{"something"};
  other.on_start["out"] = [](RunContext& run) { run.warn("about the files"); };
  other.on_finish["out"] = [&](RunContext& run, Ending) { stored = run.warnings(); };
  const Outcomes o = test::run(test::chain(5).workers(1024), other);
  REQUIRE(o.report.warnings.size() == 2);
  CHECK(o.report.warnings[0] == plan.warnings[0].str());
  CHECK(stored == std::vector<std::string>{"about the files"});
}

}  // namespace melflow::test::threads_test
