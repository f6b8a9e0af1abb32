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

TEST_CASE("joints: a chain on the workers has a queue, a limiter and a way past both everywhere") {
  const Watchdog watchdog("joints: chain");
  CHECK(joints(
            Graph().node("files", "numbers").node("a", "step", "files").node("out", "keep", "a")) ==
        Edges{
            "a -> out (multifunction_node)",
            "a -> out.waiting (priority_queue_node)",
            "a.places -> a (multifunction_node)",
            "a.waiting -> a.places (limiter_node)",
            "files -> a (multifunction_node)",
            "files -> a.waiting (priority_queue_node)",
            "files.places -> files (multifunction_node)",
            "files.waiting -> files.places (limiter_node)",
            "out.places -> out (multifunction_node)",
            "out.waiting -> out.places (limiter_node)",
        });
}

TEST_CASE("joints: a stage with threads or an engine is an async_node, with nothing before it") {
  const Watchdog watchdog("joints: dedicated threads");
  for (const char* option : {"own_threads", "elsewhere"}) {
    CAPTURE(option);
    CHECK(joints(Graph()
                     .node("files", "numbers")
                     .node("a", "step", "files", {{option, "true"}})
                     .node("out", "keep", "a")) ==
          Edges{
              "a -> out.waiting (priority_queue_node)",
              "files -> a (async_node)",
              "files.places -> files (multifunction_node)",
              "files.waiting -> files.places (limiter_node)",
              "out.places -> out (multifunction_node)",
              "out.waiting -> out.places (limiter_node)",
          });
  }
}

TEST_CASE("joints: several branches are sent to by their queues alone") {
  const Watchdog watchdog("joints: branches");
  CHECK(joints(Graph()
                   .node("files", "numbers")
                   .node("x", "keep", "files")
                   .node("y", "keep", "files", {{"own_threads", "true"}})) ==
        Edges{
            "files -> x.waiting (priority_queue_node)",
            "files -> y (async_node)",
            "files.places -> files (multifunction_node)",
            "files.waiting -> files.places (limiter_node)",
            "x.places -> x (multifunction_node)",
            "x.waiting -> x.places (limiter_node)",
        });
}

TEST_CASE("joints: what the rule says of any plan is what is written out above") {
  CHECK(test::expected_joints({{"files"}, {"a", 0, false}, {"x", 1}, {"y", 1}, {"z", 3}}) ==
        Edges{
            "a -> x.waiting (priority_queue_node)",
            "a -> y.waiting (priority_queue_node)",
            "files -> a (async_node)",
            "files.places -> files (multifunction_node)",
            "files.waiting -> files.places (limiter_node)",
            "x.places -> x (multifunction_node)",
            "x.waiting -> x.places (limiter_node)",
            "y -> z (multifunction_node)",
            "y -> z.waiting (priority_queue_node)",
            "y.places -> y (multifunction_node)",
            "y.waiting -> y.places (limiter_node)",
            "z.places -> z (multifunction_node)",
            "z.waiting -> z.places (limiter_node)",
        });
}

}  // namespace melflow::test::joints_test
