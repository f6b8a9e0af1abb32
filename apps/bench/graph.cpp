// Measures the cost of the graph alone, with its bounds and accounting: a chain of seven nodes that
// do nothing, about as many as the README's first pipeline has.
#include <memory>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "pipeline/stage/registry.h"

namespace melflow {
namespace {

constexpr std::size_t kItems = 100'000, kNodes = 7;

struct Nothing {
  static constexpr const char* kName = "nothing";
  [[nodiscard]] static std::size_t bytes() { return 1; }
  [[nodiscard]] static std::size_t rows() { return 1; }
};
using NothingPtr = std::shared_ptr<const Nothing>;

class Numbers final : public Source<Nothing> {
 public:
  [[nodiscard]] std::size_t count() const override { return kItems; }
  [[nodiscard]] SourceItem item(std::size_t) override {
    return {std::make_shared<const Nothing>(), {}};
  }
  [[nodiscard]] std::string name(std::size_t) const override { return {}; }
};

class Pass final : public Transform<Nothing, Nothing> {
 public:
  Result<NothingPtr> process(NothingPtr in, ItemContext&) const override { return in; }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return 1;
  }
};

class Drop final : public Sink<Nothing> {
 public:
  std::optional<ItemError> consume(NothingPtr, ItemContext&) override { return {}; }
};

template <class S>
void add_stage(Registry& registry, const char* name) {
  struct Config final : StageConfig {
    [[nodiscard]] const Schema& schema() const override { return none; }
    [[nodiscard]] std::unique_ptr<Stage> make() const override { return std::make_unique<S>(); }
    Schema none;
  };
  StageInfo info;
  info.name = name;
  info.traits = S().traits();
  info.configure = [] { return std::make_unique<Config>(); };
  registry.add(std::move(info));
}

GraphSpec chain(int workers) {
  GraphSpec out;
  out.workers = workers;
  for (std::size_t i = 0; i < kNodes; ++i) {
    NodeSpec node;
    node.name = fmt::format("node{}", i);
    node.options.set("stage", Value::scalar(i == 0 ? "numbers" : i + 1 < kNodes ? "pass" : "drop"));
    if (i > 0) node.options.set("from", Value::scalar(fmt::format("node{}", i - 1)));
    out.nodes.push_back(std::move(node));
  }
  return out;
}

}  // namespace

std::vector<Measurement> graph() {
  const auto stages = std::make_shared<Registry>();
  add_stage<Numbers>(*stages, "numbers");
  add_stage<Pass>(*stages, "pass");
  add_stage<Drop>(*stages, "drop");
  const int workers = available_cpus();
  return {{"the graph, " + cores_text(workers), "ns an item and node", [=](const Slice& slice) {
             const auto began = std::chrono::steady_clock::now();
             double items = 0;
             do {
               Runner runner(build_plan(chain(workers), *stages));
               const RunReport report = runner.run();
               if (report.counts.ok != kItems)
                 throw RunError("the graph lost items: " + report.error);
               items += kItems;
             } while (!slice.is_over(began));
             return 1e9 * Slice::seconds_since(began) / (items * kNodes);
           }}};
}

}  // namespace melflow
