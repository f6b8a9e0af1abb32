// Measures the cost of the framework: chains of stages that do nothing, so that all time is spent
// in the graph, oneTBB and the allocator. Figures are per item and node; 7 nodes are the shape of
// the main job.
//
//   graph/NODES/WORKERS       a plan run by melflow::Runner: queues, memory, ledger, clocks
//   tasks/FILES/WORKERS       seven nodes, with FILES items (files) per task instead of the default
//   outputs/N/WORKERS         a route to N sinks in turn, one item per task; s_per_item
//   plain_tbb/NODES/WORKERS   the same chain of unbounded tbb::flow nodes, without all of these
#include <benchmark/benchmark.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/options/option_list.h"
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
// Emits items from its outputs in turn.
struct TurnsOptions {
  int count = 1;
  void describe(Schema& s) { s.field("count", count, "").range(1, 64); }
};
class Turns final : public ItemStage {
 public:
  explicit Turns(const TurnsOptions& options)
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<Nothing>(),
                   .out = port_type<Nothing>(),
                   .order = BlockOrder::any}),
        count_(options.count) {}
  static std::vector<std::string> outputs(const NodeSpec& spec) {
    std::vector<std::string> out;
    const Value* count = spec.options.find("count");
    for (int i = 0; count != nullptr && i < std::stoi(count->text()); ++i)
      out.push_back(fmt::format("o{}", i));
    return out;
  }
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    const int way = static_cast<int>(context.origin().stream->index()) % count_;
    context.route(way, ItemError::skipped("goes elsewhere"));
    Emission out{item.payload, item.bytes, item.rows};
    out.output = way;
    return out;
  }
  std::size_t output_bound(const SourceInfo&, std::size_t) const override { return 1; }

 private:
  int count_;
};

const RegisterStage<Drop, NoOptions> drop{"drop", ""};
const RegisterStage<Turns, TurnsOptions> turns{"turns", ""};

GraphSpec fan(int outputs, int workers) {
  GraphSpec spec;
  spec.workers = workers;
  const auto node = [&spec](std::string name, const OptionList& options) {
    spec.nodes.push_back({std::move(name), {}, map_of(options)});
  };
  node("files", {{"stage", "numbers"}, {"files_per_task", 1}});
  node("turns", {{"stage", "turns"}, {"from", "files"}, {"count", outputs}});
  for (int i = 0; i < outputs; ++i)
    node(fmt::format("n{}", i), {{"stage", "drop"}, {"from", fmt::format("turns.o{}", i)}});
  return spec;
}

// `files`: per task; 0: auto.
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

void outputs(benchmark::State& state) {
  for (auto _ : state) {
    Runner runner(
        build_plan(fan(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)))));
    if (runner.run().counts.ok != kItems) state.SkipWithError("items were lost");
  }
  const double items = static_cast<double>(state.iterations()) * kItems;
  state.counters["s_per_item"] =
      benchmark::Counter(items, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
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
BENCHMARK(outputs)
    ->ArgsProduct({{1, 2, 4, 16}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(plain_tbb)->ArgsProduct({{2, 7}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
