// An observer of a run gets a pair of calls per action of a node, on the thread that did it.
#include "pipeline/report/observer.h"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pipeline/run/runner.h"
#include "tests/pipeline/test_graph.h"
#include "tests/pipeline/test_stages.h"
#include "tests/support/watchdog.h"

namespace melflow::test::observer_test {
namespace {

class Recorder final : public RunObserver {
 public:
  void enter(int node) noexcept override {
    const std::lock_guard lock(mutex_);
    inside_[std::this_thread::get_id()].push_back(node);
    ++entered[node];
  }
  void leave() noexcept override {
    const std::lock_guard lock(mutex_);
    std::vector<int>& inside = inside_[std::this_thread::get_id()];
    if (inside.empty())
      ++unmatched_;
    else
      inside.pop_back();
  }
  std::uint64_t begin(int node) noexcept override {
    const std::lock_guard lock(mutex_);
    ++begun[node];
    under_way_.insert(++last_);
    return last_;
  }
  void end(std::uint64_t item) noexcept override {
    const std::lock_guard lock(mutex_);
    if (under_way_.erase(item) == 0) ++unmatched_;
  }

  // Returns the nodes that the calling thread is in, the innermost last.
  std::vector<int> inside() {
    const std::lock_guard lock(mutex_);
    return inside_[std::this_thread::get_id()];
  }
  // Checks after the run that nothing is open, and that nothing was closed twice.
  bool all_matched() {
    for (const auto& [thread, inside] : inside_)
      if (!inside.empty()) return false;
    return under_way_.empty() && unmatched_ == 0;
  }

  std::map<int, std::size_t> entered, begun;

 private:
  std::mutex mutex_;
  std::map<std::thread::id, std::vector<int>> inside_;
  std::set<std::uint64_t> under_way_;
  std::uint64_t last_ = 0;
  int unmatched_ = 0;
};

RunReport observed(const Graph& graph, World& world, Recorder& recorder) {
  const Watchdog watchdog("an observed run");
  Runner runner(test::make_plan(graph, world), &recorder);
  return runner.run();
}

Graph every_kind() {
  return Graph(
             "files: numbers items=120; "
             "elsewhere: step < files concurrency=5 elsewhere=true; "
             "cut: expand < elsewhere blocks=3; "
             "own: step < cut own_threads=true concurrency=2; "
             "gather: gather < own batch=7; step: batch_step < gather; "
             "out: batch_keep < step")
      .workers(3);
}

}  // namespace

TEST_CASE("observer: a pair for every item of every node, whoever runs it") {
  World world;
  Recorder recorder;
  const RunReport report = observed(every_kind(), world, recorder);
  REQUIRE(report.ending == Ending::complete);
  CHECK(recorder.all_matched());
  const auto& s = report.stages;
  CHECK(recorder.entered[0] == 120);
  CHECK(recorder.entered.count(1) == 0);
  CHECK(recorder.begun == std::map<int, std::size_t>{{1, 120}});
  // A node that emits several blocks is entered for each.
  CHECK(recorder.entered[2] == s[2].items_out);
  CHECK(recorder.entered[2] > 120);
  CHECK(recorder.entered[3] == s[3].items_in);
  // Partial batches are requested from the node.
  CHECK(recorder.entered[4] >= s[4].items_in);
  CHECK(recorder.entered[4] <= s[4].items_in + s[4].items_out);
  CHECK(recorder.entered[5] == s[5].items_in);
  CHECK(recorder.entered[6] == s[6].items_in);
}

TEST_CASE("observer: a stage at work is what its thread is in") {
  World world;
  Recorder recorder;
  std::mutex mutex;
  std::set<std::vector<int>> seen;
  world.hooks["own"] = on_item([&](const Number&) {
    const std::lock_guard lock(mutex);
    seen.insert(recorder.inside());
  });
  observed(every_kind(), world, recorder);
  CHECK(seen == std::set<std::vector<int>>{{3}});
}

TEST_CASE("observer: pairs close when a stage throws, an engine refuses, and when the run breaks") {
  for (const char* node : {"own", "elsewhere"}) {
    for (const bool breaks : {false, true}) {
      CAPTURE(std::string(node));
      CAPTURE(breaks);
      World world;
      world.check_edges = false;
      world.hooks[node] = [breaks](const Number& n, ItemContext*) -> std::optional<ItemError> {
        if (n.item % 10 == 3 && breaks) throw RunError("broken");
        if (n.item % 10 == 3) throw std::runtime_error("not this one");
        if (n.item % 10 == 4) return ItemError::skipped("not wanted");
        return {};
      };
      Recorder recorder;
      const RunReport report = observed(every_kind(), world, recorder);
      CHECK(report.ending == (breaks ? Ending::failed : Ending::complete));
      CHECK(recorder.all_matched());
      CHECK(recorder.begun[1] == report.stages[1].items_in);
      CHECK(recorder.entered[3] == report.stages[3].items_in);
    }
  }
}

}  // namespace melflow::test::observer_test
