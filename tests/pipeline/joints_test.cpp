// The graph that oneTBB is told to make equals the one that the plan demands, edge by edge. Shipped
// pipelines: tests/jobs/joints_test.cpp; random graphs: random_graphs_test.cpp.
#include <doctest/doctest.h>

#include "tests/pipeline/test_graph.h"
#include "tests/support/expected_joints.h"
#include "tests/support/printing.h"
#include "tests/support/watchdog.h"

namespace melflow::test::joints_test {

using Edges = std::vector<std::string>;

namespace {

Edges joints(const Graph& graph) {
  World world;
  return test::joints_of(test::run(graph, world).report);
}

}  // namespace

TEST_CASE("joints: each edge of the plan is one of oneTBB's") {
  const Watchdog watchdog("joints: chain");
  CHECK(joints(Graph("files: numbers; a: step < files; out: keep < a")) ==
        Edges{
            "a -> out (multifunction_node)",
            "files -> a (multifunction_node)",
        });
}

TEST_CASE("joints: a stage with threads or an engine is an async_node") {
  const Watchdog watchdog("joints: dedicated threads");
  for (const char* option : {"own_threads", "elsewhere"}) {
    CAPTURE(option);
    CHECK(joints(Graph("files: numbers")
                     .node("a", "step", "files", {{option, "true"}})
                     .node("out", "keep", "a")) == Edges{
                                                       "a -> out (multifunction_node)",
                                                       "files -> a (async_node)",
                                                   });
  }
}

TEST_CASE("joints: each branch has an edge") {
  const Watchdog watchdog("joints: branches");
  CHECK(joints(Graph("files: numbers; x: keep < files; "
                     "y: keep < files own_threads=true")) == Edges{
                                                                 "files -> x (multifunction_node)",
                                                                 "files -> y (async_node)",
                                                             });
}

TEST_CASE("joints: what the rule says of any plan is what is written out above") {
  CHECK(test::expected_joints({{"files"}, {"a", 0, false}, {"x", 1}, {"y", 1}, {"z", 3}}) ==
        Edges{
            "a -> x (multifunction_node)",
            "a -> y (multifunction_node)",
            "files -> a (async_node)",
            "y -> z (multifunction_node)",
        });
}

}  // namespace melflow::test::joints_test
