// What the depth of a queue is worth between a node whose items come in bursts, as from a disk far
// away, and one that takes its time with each.
//
//   bursts/QUEUE   0: auto
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "pipeline/graph_builder.h"
#include "pipeline/runner.h"

namespace {

using namespace melflow;

constexpr int kItems = 4800;

struct Nothing {
  static constexpr const char* kName = "nothing";
  [[nodiscard]] std::size_t bytes() const { return 1; }
  [[nodiscard]] std::size_t rows() const { return 1; }
};
using NothingPtr = std::shared_ptr<const Nothing>;

struct NoOptions {
  void describe(Schema&) {}
};

// 24 items at once, then none for two milliseconds.
class Bursts final : public Transform<Nothing, Nothing> {
 public:
  explicit Bursts(const NoOptions&) {}
  Result<NothingPtr> process(NothingPtr in, ItemContext& context) const override {
    if (context.origin().stream->index() % 24 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return in;
  }
  StageResources resources() const override { return {.blocking = true}; }
  std::size_t output_bound(const SourceInfo&, std::size_t) const override { return 1; }
};

// Sixty microseconds an item.
class Steady final : public Sink<Nothing> {
 public:
  explicit Steady(const NoOptions&) {}
  std::optional<ItemError> consume(NothingPtr, ItemContext&) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(60);
    while (std::chrono::steady_clock::now() < end) {
    }
    return {};
  }
};

class Numbers final : public Source<Nothing> {
 public:
  explicit Numbers(const NoOptions&) {}
  std::size_t count() const override { return kItems; }
  SourceItem item(std::size_t) override { return {std::make_shared<const Nothing>(), {}}; }
  std::string name(std::size_t) const override { return {}; }
};

const RegisterStage<Numbers, NoOptions> numbers{"few_numbers", ""};
const RegisterStage<Bursts, NoOptions> bursting{"bursts", ""};
const RegisterStage<Steady, NoOptions> steady{"steady", ""};

void bursts(benchmark::State& state) {
  GraphSpec spec;
  spec.workers = 2;
  for (const char* stage : {"few_numbers", "bursts", "steady"}) {
    NodeSpec n;
    n.name = fmt::format("n{}", spec.nodes.size());
    n.options.set("stage", Value::scalar(stage));
    n.options.set("concurrency", Value::scalar("1"));
    if (!spec.nodes.empty()) n.options.set("from", Value::scalar(spec.nodes.back().name));
    spec.nodes.push_back(std::move(n));
  }
  const auto queue = state.range(0);
  if (queue > 0) spec.nodes.back().options.set("queue", Value::scalar(std::to_string(queue)));
  int settled = 0;
  for (auto _ : state) {
    Runner runner(build_plan(spec));
    const RunReport r = runner.run();
    if (r.counts.ok != kItems) state.SkipWithError("items were lost");
    settled = r.edges.back().capacity;
  }
  state.counters["queue_at_end"] = settled;
}

}  // namespace

BENCHMARK(bursts)->Arg(0)->Arg(2)->Arg(4)->Arg(16)->Arg(64)->UseRealTime()->Unit(
    benchmark::kMillisecond);
