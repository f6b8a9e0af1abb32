// Graphs with random concurrency, queues, batches, memory, workers and dedicated threads. Whatever
// the mixture, the result equals that of the plainest run; when a run is stopped or fails in the
// middle, every item is accounted for and every bound holds.
//
// MELFLOW_STRESS=20 runs twenty times as many, MELFLOW_STRESS_SEED=7 others. A failure names its
// seed; the same seed makes the same mixture again, though not the same timing.
#include <doctest/doctest.h>

#include <cstdlib>
#include <latch>
#include <random>
#include <set>
#include <thread>

#include "tests/pipeline/test_graph.h"
#include "tests/support/sanitized.h"
#include "tests/support/watchdog.h"

namespace melflow::test::stress_test {
namespace {

unsigned from_environment(const char* name, unsigned fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : fallback;
}

// Runs `body(seed)` many times, each under a watchdog that knows the seed.
template <class F>
void for_seeds(const char* what, unsigned count, F&& body) {
  const unsigned first = from_environment("MELFLOW_STRESS_SEED", 1) * 1000003U;
  const unsigned repeats = test::drawn(count) * from_environment("MELFLOW_STRESS", 1);
  for (unsigned i = 0; i < repeats; ++i) {
    const unsigned seed = first + i;
    CAPTURE(seed);
    World world;
    const Watchdog watchdog(std::string(what) + ", seed " + std::to_string(seed),
                            [&world] { return world.state(); });
    body(seed, world);
  }
}

constexpr int kItems = 60;
constexpr std::size_t kBlock = 400;  // largest admission cost of the shapes below

enum class Shape { chain, batches, fan_out };

// Returns the plainest form; every sink writes in order.
Graph shape(Shape s) {
  Graph g;
  g.node("files", "numbers", "", {{"items", std::to_string(kItems)}, {"size", "0"}});
  switch (s) {
    case Shape::chain:
      g.nodes(
          "a: step < files; cut: expand < a blocks=7; "
          "sum: running < cut; b: step < sum; out: keep < b");
      break;
    case Shape::batches:
      g.nodes(
          "a: step < files; cut: expand < a blocks=7; "
          "sum: running < cut; g: gather < sum size=0; "
          "m: batch_step < g; out: batch_keep < m");
      break;
    case Shape::fan_out:
      g.nodes(
          "a: step < files size=50; "
          "cut: expand < a blocks=7 size=50; "
          "thin: thin < cut size=0; sum: running < cut; "
          "m: step < thin; g: gather < m size=0; m2: batch_step < g; "
          "out: keep < sum; out2: batch_keep < m2; "
          "out3: keep < files");
      break;
  }
  for (const NodeSpec& n : g.spec.nodes)
    if (n.name.starts_with("out")) g.set(n.name, "ordered", "true");
  return g;
}

std::vector<std::string> sinks(Shape s) {
  return s == Shape::fan_out ? std::vector<std::string>{"out", "out2", "out3"}
                             : std::vector<std::string>{"out"};
}

// Draws everything that must not change the result.
Graph mixed(Shape s, std::mt19937& random) {
  const auto upto = [&random](int n) { return 1 + static_cast<int>(random() % unsigned(n)); };
  Graph g = shape(s);
  const bool own_threads = random() % 3 == 0;
  const int largest = random() % 4 == 0 ? 1 : 7;
  for (const NodeSpec& n : std::vector<NodeSpec>(g.spec.nodes)) {
    const bool serial = n.name == "files" || n.name == "g";
    g.set(n.name, "concurrency", std::to_string(serial ? 1 : upto(largest)));
    g.set(n.name, "queue", random() % 3 == 0 ? "auto" : std::to_string(upto(largest)));
    if (n.name != "files" && random() % 3 == 0)
      g.set(n.name, "start_at", random() % 2 == 0 ? "1" : "0.5");
    g.set(n.name, "work", std::to_string(random() % 2 == 0 ? 0 : upto(300)));
    if (own_threads && random() % 3 == 0) g.set(n.name, "own_threads", "true");
    if (n.options.find("stage")->text() == "step" && random() % 3 == 0)
      g.set(n.name, "elsewhere", "true");
    if (n.name == "g") g.set(n.name, "batch", std::to_string(upto(12)));
  }
  const std::size_t memories[] = {2 * kBlock, 2 * kBlock + 1, 3 * kBlock,
                                  5 * kBlock, 17 * kBlock,    1 << 20};
  g.memory(memories[random() % std::size(memories)]);
  const int workers[] = {1, 2, 3, 8};
  return g.workers(workers[random() % 4]);
}

// An item fails in at most one node, at one of its blocks, so that the reason is always the same.
void add_failures(World& world, Shape s, unsigned seed) {
  const std::vector<std::string> nodes =
      s == Shape::chain     ? std::vector<std::string>{"a", "cut", "sum", "b", "out"}
      : s == Shape::batches ? std::vector<std::string>{"a", "cut", "sum", "m"}
                            : std::vector<std::string>{"a", "cut", "sum", "m", "m2", "out3"};
  for (std::size_t k = 0; k < nodes.size(); ++k)
    world.hooks[nodes[k]] = [k, seed, count = nodes.size()](
                                const Number& n, ItemContext*) -> std::optional<ItemError> {
      const std::uint64_t h = test::mix(n.item, seed);
      // Block 0 reaches every node.
      if (h % 4 != 0 || (h / 4) % count != k || n.block != 0) return {};
      switch ((h / 64) % 3) {
        case 0:
          return ItemError::skipped("skipped here");
        case 1:
          return ItemError::failed("failed here");
        default:
          throw std::runtime_error("thrown here");
      }
    };
}
// batch_step fails single parts through the context, so its hook must not throw.
void tame_batches(World& world, const char* node) {
  if (const auto it = world.hooks.find(node); it != world.hooks.end())
    it->second = [inner = it->second](const Number& n, ItemContext* c) -> std::optional<ItemError> {
      try {
        return inner(n, c);
      } catch (const std::exception&) {
        return ItemError::failed("unexpected error: thrown here");
      }
    };
}

using Result = std::map<std::string, std::vector<Row>>;

Result rows_of(World& world, Shape s) {
  Result out;
  for (const std::string& sink : sinks(s)) out[sink] = world.rows(sink);
  return out;
}

struct Reference {
  Result rows;
  std::vector<std::string> remarks;
  Ledger::Counts counts;
};

std::vector<std::string> texts(const std::vector<Remark>& remarks) {
  std::vector<std::string> out;
  for (const Remark& r : remarks)
    out.push_back(r.name + " " + to_text(r.entry.outcome) + " " + r.entry.stage + " " +
                  r.entry.reason);
  return out;
}

// Runs with one of everything, one worker and all the memory: nothing overtakes anything.
Reference reference(Shape s, unsigned failures) {
  World world;
  if (failures != 0) {
    world.check_edges = false;
    add_failures(world, s, failures);
    if (s != Shape::chain) tame_batches(world, s == Shape::batches ? "m" : "m2");
  }
  Graph g = shape(s).workers(1).memory(1 << 20);
  for (const NodeSpec& n : std::vector<NodeSpec>(g.spec.nodes)) g.set(n.name, "concurrency", "1");
  const Outcomes o = test::run(g, world);
  CHECK(o.report.ending == Ending::complete);
  return {rows_of(world, s), texts(o.remarks), o.report.counts};
}

// Checks a run that ended early: every row belongs to an item that is ok, and such an item has all
// of its rows, in every sink.
void check_partial(World& world, Shape s, const Reference& whole, const Ledger::Counts& counts) {
  for (const std::string& sink : sinks(s)) {
    CAPTURE(sink);
    std::set<std::size_t> items;
    for (const Row& r : world.rows(sink)) items.insert(r.item);
    CHECK(items.size() == counts.ok);
    std::vector<Row> expected;
    for (const Row& r : whole.rows.at(sink))
      if (items.contains(r.item)) expected.push_back(r);
    CHECK(world.rows(sink) == expected);
  }
}

const std::vector<Shape> kShapes{Shape::chain, Shape::batches, Shape::fan_out};

}  // namespace

TEST_CASE("stress: every mixture of bounds gives the rows of the plainest run") {
  for (const Shape s : kShapes) {
    const Reference expected = reference(s, 0);
    CHECK(expected.counts.ok == kItems);
    for_seeds("mixtures", 40, [&](unsigned seed, World& world) {
      std::mt19937 random(seed);
      const Outcomes o = test::run(mixed(s, random), world);
      CHECK(o.report.ending == Ending::complete);
      CHECK(o.report.counts.ok == kItems);
      CHECK(rows_of(world, s) == expected.rows);
    });
  }
}

TEST_CASE("stress: with failing items, too, and always the same ones are named") {
  for (const Shape s : kShapes) {
    for (unsigned failures : {1U, 2U}) {
      const Reference expected = reference(s, failures);
      CHECK(expected.counts.failed > 0);
      CHECK(expected.counts.skipped > 0);
      for_seeds("failures", 15, [&](unsigned seed, World& world) {
        std::mt19937 random(seed);
        world.check_edges = false;
        add_failures(world, s, failures);
        if (s != Shape::chain) tame_batches(world, s == Shape::batches ? "m" : "m2");
        const Outcomes o = test::run(mixed(s, random), world);
        CHECK(o.report.ending == Ending::complete);
        CHECK(texts(o.remarks) == expected.remarks);
        CHECK(rows_of(world, s) == expected.rows);
      });
    }
  }
}

TEST_CASE("stress: a stop at any moment leaves whole items and complete accounts") {
  for (const Shape s : kShapes) {
    const Reference whole = reference(s, 0);
    for_seeds("stops", 25, [&](unsigned seed, World& world) {
      std::mt19937 random(seed);
      world.check_edges = false;
      const Graph g = mixed(s, random);
      // Another thread stops the run somewhere in the graph, after some calls.
      const std::string where = g.spec.nodes[random() % g.spec.nodes.size()].name;
      const int when = static_cast<int>(random() % 120);
      std::atomic<int> calls{0};
      test::Gate now;
      world.hooks[where] = on_item([&](const Number&) {
        if (calls++ == when) now.open();
      });
      Ending told = Ending::failed;
      world.on_finish["out"] = [&](RunContext&, Ending e) { told = e; };
      Outcomes o;
      {
        Runner runner(test::make_plan(g, world));
        std::thread stopper([&] {
          now.wait();
          runner.stop();
        });
        o.report = runner.run();
        o.remarks = runner.remarks();
        now.open();
        stopper.join();
      }
      test::check_run(o, world);
      CHECK(world.live.now() == 0);
      CHECK(o.report.counts.failed == 0);
      CHECK(o.report.ending == (o.report.counts.not_run > 0 ? Ending::stopped : Ending::complete));
      CHECK(told == o.report.ending);
      check_partial(world, s, whole, o.report.counts);
    });
  }
}

TEST_CASE("stress: an error of the run at any moment leaves whole items and complete accounts") {
  for (const Shape s : kShapes) {
    const Reference whole = reference(s, 0);
    for_seeds("aborts", 25, [&](unsigned seed, World& world) {
      std::mt19937 random(seed);
      world.check_edges = false;
      const Graph g = mixed(s, random);
      const std::string where = g.spec.nodes[random() % g.spec.nodes.size()].name;
      const int when = static_cast<int>(random() % 40);
      const bool memory = random() % 2 == 0;
      std::atomic<int> calls{0};
      world.hooks[where] = [&](const Number&, ItemContext*) -> std::optional<ItemError> {
        if (calls++ < when) return {};  // every later call fails as well
        if (memory) throw std::bad_alloc();
        throw RunError("the end");
      };
      const Outcomes o = test::run(g, world);
      CHECK(o.report.ending == Ending::failed);
      CHECK(o.report.error == (memory ? where + ": out of memory; lower memory.host or the node's "
                                                "concurrency"
                                      : "the end"));
      CHECK(o.report.counts.failed == 0);
      check_partial(world, s, whole, o.report.counts);
    });
  }
}

TEST_CASE("stress: several stops, an error and many questions at the same time") {
  for_seeds("everything at once", 20, [&](unsigned seed, World& world) {
    std::mt19937 random(seed);
    world.check_edges = false;
    const Graph g = mixed(Shape::fan_out, random);
    std::latch begun(1);
    std::atomic<int> calls{0};
    const int when = static_cast<int>(random() % 60);
    world.hooks["sum"] = on_item([&](const Number&) {
      if (calls++ == when) {
        begun.count_down();
        throw RunError("the end");
      }
    });
    Outcomes o;
    {
      Runner runner(test::make_plan(g, world));
      std::atomic<bool> over{false};
      std::vector<std::thread> others;
      for (int i = 0; i < 2; ++i)
        others.emplace_back([&] {
          begun.wait();
          runner.stop();
        });
      others.emplace_back([&] {
        while (!over) {
          const Progress p = runner.progress();
          if (p.counts.closed() > p.counts.found) world.complain("more closed than found");
          std::this_thread::yield();  // lets others on the same core run
        }
      });
      o.report = runner.run();
      over = true;
      if (calls <= when) begun.count_down();
      for (std::thread& t : others) t.join();
      o.remarks = runner.remarks();
    }
    test::check_run(o, world);
    CHECK(world.live.now() == 0);
  });
}

}  // namespace melflow::test::stress_test
