// What the framework itself costs: chains of stages that do nothing, so all of the time is the graph's, oneTBB's and
// the allocator's. Figures are per item and node; 7 nodes are the shape of the main job.
//
//   graph/NODES/WORKERS       a plan run by melflow::Runner: bounded queues, memory reservations, ledger, clocks
//   tasks/FILES/WORKERS       seven nodes, with so many items (files) a task; `graph` leaves that to the run
//   plain_tbb/NODES/WORKERS the same chain of unbounded tbb::flow nodes, which have none of these
#include <benchmark/benchmark.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"

namespace {

using namespace melflow;

constexpr int kItems = 200000;

struct Nothing {
  static constexpr const char* kName = "nothing";
  [[nodiscard]] std::size_t bytes() const { return 1; }
  [[nodiscard]] std::size_t rows() const { return 1; }
};
using NothingPtr = std::shared_ptr<const Nothing>;

struct NoOptions {
  void describe(Schema&) {}
};

class Numbers final : public Source<Nothing> {
 public:
  explicit Numbers(const NoOptions&) {}
  std::size_t count() const override { return kItems; }
  SourceItem item(std::size_t) override { return {std::make_shared<const Nothing>(), {}}; }
  std::string name(std::size_t) const override { return {}; }
};

class Pass final : public Transform<Nothing, Nothing> {
 public:
  explicit Pass(const NoOptions&) {}
  Result<NothingPtr> process(NothingPtr in, ItemContext&) const override { return in; }
  std::size_t output_bound(const SourceInfo&, std::size_t) const override { return 1; }
};

class Drop final : public Sink<Nothing> {
 public:
  explicit Drop(const NoOptions&) {}
  std::optional<ItemError> consume(NothingPtr, ItemContext&) override { return {}; }
};

const RegisterStage<Numbers, NoOptions> numbers{"numbers", ""};
const RegisterStage<Pass, NoOptions> pass{"pass", ""};
const RegisterStage<Drop, NoOptions> drop{"drop", ""};

// `files` a task; 0: auto.
GraphSpec chain(int nodes, int workers, int files = 0) {
  GraphSpec spec;
  spec.workers = workers;
  for (int i = 0; i < nodes; ++i) {
    NodeSpec n;
    n.name = fmt::format("n{}", i);
    n.options.set("stage", Value::scalar(i == 0 ? "numbers" : i + 1 == nodes ? "drop" : "pass"));
    if (i == 0 && files > 0) n.options.set("files_per_task", Value::scalar(std::to_string(files)));
    if (i > 0) n.options.set("from", Value::scalar(fmt::format("n{}", i - 1)));
    spec.nodes.push_back(std::move(n));
  }
  return spec;
}

void report(benchmark::State& state, int nodes) {
  const double items = static_cast<double>(state.iterations()) * kItems;
  state.counters["items/s"] = benchmark::Counter(items, benchmark::Counter::kIsRate);
  state.counters["s_per_item_node"] =
      benchmark::Counter(items * nodes, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void run(benchmark::State& state, int nodes, int workers, int files) {
  for (auto _ : state) {
    Runner runner(build_plan(chain(nodes, workers, files)));
    if (runner.run().counts.ok != kItems) state.SkipWithError("items were lost");
  }
  report(state, nodes);
}

void graph(benchmark::State& state) {
  run(state, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 0);
}

void tasks(benchmark::State& state) {
  run(state, 7, static_cast<int>(state.range(1)), static_cast<int>(state.range(0)));
}

void plain_tbb(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const int workers = static_cast<int>(state.range(1));
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(workers));
  tbb::task_arena arena(workers);
  for (auto _ : state) {
    arena.execute([&] {
      tbb::flow::graph g;
      using Node = tbb::flow::function_node<NothingPtr, NothingPtr>;
      std::vector<std::unique_ptr<Node>> chained;
      for (int i = 1; i < nodes; ++i) {
        chained.push_back(
            std::make_unique<Node>(g, tbb::flow::unlimited, [](NothingPtr p) { return p; }));
        if (i > 1) tbb::flow::make_edge(*chained[chained.size() - 2], *chained.back());
      }
      for (int i = 0; i < kItems; ++i) chained.front()->try_put(std::make_shared<const Nothing>());
      g.wait_for_all();
    });
  }
  report(state, nodes);
}

}  // namespace

BENCHMARK(graph)->ArgsProduct({{2, 7}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(tasks)
    ->ArgsProduct({{1, 64, 512}, {1, 2, 16}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(plain_tbb)->ArgsProduct({{2, 7}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
