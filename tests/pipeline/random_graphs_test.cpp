// Random graphs with random bounds: every row, warning and count equals the one that was computed
// without a graph; and a run that is stopped or fails in the middle leaves only whole items.
// tests/long/random_graphs.sh runs many of these.
//
// MELFLOW_RANDOM_GRAPHS=10000 runs that many, MELFLOW_RANDOM_SEED=7 others. A failure names its
// seed; the same seed makes the same graph again, though not the same timing.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/pipeline/random_graph.h"
#include "tests/support/sanitized.h"
#include "tests/support/watchdog.h"

namespace random_graphs_test {

using namespace melflow;
using namespace melflow::test;

namespace {

unsigned from_environment(const char* name, unsigned fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : fallback;
}

unsigned first_seed() { return from_environment("MELFLOW_RANDOM_SEED", 1); }

void check(unsigned seed, Draw draw) {
  CAPTURE(seed);
  const RandomGraph graph(seed, draw);
  const Watchdog watchdog("random graph", [&graph] { return graph.text(); });
  graph.check();
}

}  // namespace

TEST_CASE("random graphs: with one of everything they give what was computed without a graph") {
  for (unsigned i = 0; i < drawn(60); ++i) check(first_seed() + i, Draw::plain);
}

TEST_CASE(
    "random graphs: whatever the bounds are and whatever happens, rows and accounts are right") {
  const unsigned count = from_environment("MELFLOW_RANDOM_GRAPHS", drawn(400));
  std::size_t nodes = 0, incidents = 0;
  for (unsigned i = 0; i < count; ++i) {
    const RandomGraph graph(first_seed() + i);
    nodes += graph.nodes();
    incidents += graph.incident() == test::Incident::none ? 0 : 1;
    check(first_seed() + i, Draw::all);
  }
  if (std::getenv("MELFLOW_RANDOM_GRAPHS") != nullptr)
    MESSAGE(count, " graphs from seed ", first_seed(), " with ", nodes, " nodes; ", incidents,
            " of them ended early or could");
}

TEST_CASE(
    "random graphs: of what two nodes say of an item the plan decides, and not who comes first") {
  const unsigned count = from_environment("MELFLOW_RANDOM_GRAPHS", drawn(300));
  for (unsigned i = 0; i < count; ++i) check(first_seed() + i, Draw::two_fates);
}

}  // namespace random_graphs_test
