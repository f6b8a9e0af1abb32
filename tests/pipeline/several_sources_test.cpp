// Graphs with several sources: docs/decisions/0020-several-sources.md. random_graphs_test.cpp has
// random ones.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "tests/pipeline/test_graph.h"
#include "tests/support/printing.h"
#include "tests/support/watchdog.h"

namespace melflow::test::several_sources_test {
namespace {

// Five items of `one`, three of `two`.
Graph two_sources() { return Graph("one: numbers items=5; two: numbers items=3"); }

// Returns the rows of the items [first, end) after these steps.
std::vector<Row> rows(std::size_t first, std::size_t end, const std::vector<std::string>& steps) {
  std::vector<Row> out;
  for (std::size_t i = first; i < end; ++i) {
    out.push_back({i, 0, test::first_value(i)});
    for (const std::string& step : steps) out.back().value = test::stepped(out.back().value, step);
  }
  return out;
}

std::vector<Row> operator+(std::vector<Row> a, const std::vector<Row>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class LeftOut final : public Sink<test::Number>, public NotesLeftOut {
 public:
  explicit LeftOut(std::vector<std::string>& told) : told_(told) {}
  std::optional<ItemError> consume(std::shared_ptr<const test::Number>, ItemContext&) override {
    return {};
  }
  void left_out(std::size_t index, int stage, const ItemError& why) override {
    const std::lock_guard lock(mutex_);
    told_.push_back(fmt::format("{} by {}: {}", index, stage, why.reason));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string>& told_;
};

}  // namespace

TEST_CASE("several sources: their items follow each other in the order of the sources") {
  const Watchdog watchdog("several sources: order");
  for (const int workers : test::kWorkers) {
    CAPTURE(workers);
    World world;
    const auto out = test::run(
        two_sources().nodes("a: step < [one, two]; out: keep < a ordered=true").workers(workers),
        world);
    CHECK(out.report.counts.ok == 8);
    CHECK(world.rows("out") == rows(0, 8, {"a"}));
    CHECK(test::stage(out.report, "sources").items_out == 8);
  }
}

TEST_CASE("several sources: the order in which they are written counts, not that of from") {
  const Watchdog watchdog("several sources: order of from");
  World world;
  test::run(two_sources().node("out", "keep", "[two, one]", {{"ordered", "true"}}), world);
  CHECK(world.rows("out") == rows(0, 8, {}));
}

TEST_CASE("several sources: each may have nodes of its own before they meet") {
  const Watchdog watchdog("several sources: branches");
  for (const int workers : test::kWorkers) {
    for (const char* files : {"1", "3", "64"}) {
      CAPTURE(workers);
      CAPTURE(std::string(files));
      World world;
      world.check_edges = false;
      Graph graph = two_sources();
      graph.set("one", "files_per_task", files).set("two", "files_per_task", files);
      graph.nodes("a: step < two; b: step < a; j: join < [one, b]");
      const auto out =
          test::run(graph.node("out", "keep", "j", {{"ordered", "true"}}).workers(workers), world);
      CHECK(world.rows("out") == rows(0, 5, {}) + rows(5, 8, {"a", "b"}));
      CHECK(test::stage(out.report, "a").items_in == 3);
      CHECK(out.remarks.empty());
    }
  }
}

TEST_CASE("several sources: they may have nothing in common but the run") {
  const Watchdog watchdog("several sources: apart");
  World world;
  world.check_edges = false;
  const auto out = test::run(two_sources().nodes("a: step < one; b: step < two; "
                                                 "out_a: keep < a ordered=true; "
                                                 "out_b: keep < b ordered=true"),
                             world);
  CHECK(out.report.counts.ok == 8);
  CHECK(world.rows("out_a") == rows(0, 5, {"a"}));
  CHECK(world.rows("out_b") == rows(5, 8, {"b"}));
}

TEST_CASE("several sources: a sink is told of the items of sources that do not lead to it") {
  const Watchdog watchdog("several sources: omitted");
  World world;
  world.check_edges = false;
  std::vector<std::string> told;
  Graph graph = two_sources().node("out", "keep", "[one, two]");
  graph.node("part", "keep", "two");
  Plan plan = test::make_plan(graph, world);
  PlanNode& part = plan.nodes.back();
  REQUIRE(part.name == "part");
  part.stage = std::make_unique<LeftOut>(told);
  part.faces = StageFaces(*part.stage);
  Runner runner(std::move(plan));
  CHECK(runner.run().counts.ok == 8);
  std::sort(told.begin(), told.end());
  std::vector<std::string> expected;
  for (int i = 0; i < 5; ++i) expected.push_back(fmt::format("{} by 0: is of the source 'one'", i));
  CHECK(told == expected);
}

TEST_CASE("several sources: an item that a route lets go of names the route, not its source") {
  const Watchdog watchdog("several sources: a route behind one");
  World world;
  world.check_edges = false;
  const auto out =
      test::run(two_sources().nodes("f: fork < one outputs=1 drops=true; out_a: keep < f.o0; "
                                    "out_b: keep < two"),
                world);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < 5; ++i) dropped += test::way_of(i, "f", 1, true) < 0 ? 1 : 0;
  REQUIRE(dropped > 0);
  CHECK(out.report.counts.skipped == dropped);
  for (const Remark& m : out.remarks) {
    CHECK(m.entry.stage == "f");
    CHECK(m.entry.reason == "goes elsewhere");
  }
}

TEST_CASE("several sources: the configuration has them as they were written") {
  World world;
  const Plan plan = test::make_plan(
      two_sources().nodes("a: step < two; j: join < [one, a]; out: keep < j"), world);
  const Value* graph = plan.settings.config.find("graph");
  REQUIRE(graph != nullptr);
  std::vector<std::string> names;
  for (const Value::Entry& e : graph->entries()) names.push_back(e.key);
  CHECK(names == std::vector<std::string>{"one", "two", "a", "j", "out"});
  CHECK(to_json(*graph->find("a")->find("from")) == "\"two\"");
  CHECK(to_json(*graph->find("j")->find("from")) == R"(["one", "a"])");
  CHECK(plan.nodes.front().name == "sources");
}

TEST_CASE("several sources: another node may be called sources") {
  World world;
  const Plan plan = test::make_plan(
      two_sources().nodes("sources: step < [one, two]; out: keep < sources"), world);
  CHECK(plan.nodes.front().name == "sources_");
  CHECK(to_json(*plan.settings.config.find("graph")->find("out")->find("from")) == "\"sources\"");
}

TEST_CASE("several sources: what is made in several ways is told with the sources of each") {
  const auto settings = [](const char* of_a, const char* other) {
    World world;
    const Plan plan = test::make_plan(two_sources()
                                          .node("a", "step", of_a)
                                          .node("j", "join", fmt::format("[a, {}]", other))
                                          .node("out", "keep", "j"),
                                      world);
    return to_json(plan.nodes.back().stage->feature_settings());
  };
  const std::string one = settings("one", "two"), two = settings("two", "one");
  CHECK(one.find(R"("sources": [["one"], ["two"]])") != std::string::npos);
  CHECK(two.find(R"("sources": [["two"], ["one"]])") != std::string::npos);
}

}  // namespace melflow::test::several_sources_test
