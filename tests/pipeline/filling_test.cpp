// A node that a source adds to the graph, and the pass that fills it before the actual run.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "tests/support/concurrency_probe.h"
#include "tests/support/plan_node.h"
#include "tests/support/watchdog.h"

namespace melflow::test::filling_test {
namespace {

struct Leaf {
  static constexpr const char* kName = "leaf";
  std::size_t index = 0;
  [[nodiscard]] std::size_t bytes() const { return 100; }
  [[nodiscard]] std::size_t rows() const { return 1; }
};

// What the stages of one run saw; the test sets their behaviour.
struct Seen {
  bool fills = true;
  std::function<std::optional<ItemError>(std::size_t)> step = [](std::size_t) {
    return std::nullopt;
  };
  std::function<void(std::size_t, Filling&)> tap = [](std::size_t, Filling&) {};
  std::mutex mutex;
  std::multiset<std::size_t> tapped_before, tapped_after, written;
  std::vector<std::string> order;
  std::atomic<bool> is_filled{false};
  Ending ending = Ending::complete;
  std::size_t memory = 0;  // Filling::memory
};
Seen* seen = nullptr;

struct NoOptions {
  void describe(Schema&) {}
};
struct TreeOptions {
  int leaves = 10;
  bool filled = true;
  void describe(Schema& s) {
    s.field("leaves", leaves, "how many");
    s.field("filled", filled, "puts a tap into the graph");
  }
};

class Tree final : public Source<Leaf> {
 public:
  explicit Tree(TreeOptions options) : options_(options) {}
  static std::vector<Insertion> insert(const NodeSpec& spec) {
    const Value* filled = spec.options.find("filled");
    if (filled != nullptr && filled->text() == "false") return {};
    NodeSpec node{spec.name + ".tap", spec.mark, Value::map({}, spec.mark)};
    node.options.set("stage", Value::scalar("leaf_tap"));
    node.options.set("concurrency", Value::scalar("3"));
    return {Insertion{port_type<Leaf>(), std::move(node)}};
  }
  [[nodiscard]] std::size_t count() const override {
    return static_cast<std::size_t>(options_.leaves);
  }
  [[nodiscard]] std::string name(std::size_t i) const override { return std::to_string(i); }
  [[nodiscard]] SourceItem item(std::size_t i) override {
    auto leaf = std::make_shared<Leaf>();
    leaf->index = i;
    return {std::move(leaf), {"leaf", 100}};
  }

 private:
  TreeOptions options_;
};

class LeafStep final : public Transform<Leaf, Leaf> {
 public:
  explicit LeafStep(NoOptions) {}
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return 100;
  }
  Result<std::shared_ptr<const Leaf>> process(std::shared_ptr<const Leaf> in,
                                              ItemContext&) const override {
    if (auto error = seen->step(in->index)) return *error;
    return in;
  }
};

class LeafTap final : public Transform<Leaf, Leaf>, public FillingPass {
 public:
  explicit LeafTap(NoOptions) {}
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }
  [[nodiscard]] bool begin_filling(Filling& filling) override {
    seen->memory = filling.memory;
    if (seen->fills) filling_ = &filling;
    return seen->fills;
  }
  void filled(RunContext&) override { seen->is_filled = true; }
  Result<std::shared_ptr<const Leaf>> process(std::shared_ptr<const Leaf> in,
                                              ItemContext&) const override {
    {
      const std::lock_guard lock(seen->mutex);
      (seen->is_filled ? seen->tapped_after : seen->tapped_before).insert(in->index);
    }
    if (filling_ != nullptr && !seen->is_filled) seen->tap(in->index, *filling_);
    return in;
  }

 private:
  Filling* filling_ = nullptr;
};

class Basket final : public Sink<Leaf> {
 public:
  explicit Basket(NoOptions) {}
  std::optional<ItemError> consume(std::shared_ptr<const Leaf> in, ItemContext&) override {
    const std::lock_guard lock(seen->mutex);
    seen->written.insert(in->index);
    return std::nullopt;
  }
  void finish(RunContext&, Ending ending) override { seen->ending = ending; }
};

const RegisterStage<Tree, TreeOptions> tree{"leaf_tree", "A source."};
const RegisterStage<LeafStep, NoOptions> step{"leaf_step", "Hands leaves on."};
const RegisterStage<LeafTap, NoOptions> tap{"leaf_tap", "Is put into the graph by leaf_tree."};
const RegisterStage<Basket, NoOptions> basket{"leaf_basket", "Takes leaves."};

NodeSpec node(const std::string& name, const std::string& stage, const std::string& from = "",
              const std::vector<std::pair<std::string, std::string>>& options = {}) {
  NodeSpec out{name, {}, Value::map({})};
  out.options.set("stage", Value::scalar(stage));
  if (!from.empty()) out.options.set("from", Value::scalar(from));
  for (const auto& [key, value] : options) out.options.set(key, Value::scalar(value));
  return out;
}

GraphSpec chain(int leaves, const std::string& filled = "true") {
  GraphSpec spec;
  spec.workers = 3;
  spec.nodes = {
      node("tree", "leaf_tree", "", {{"leaves", std::to_string(leaves)}, {"filled", filled}}),
      node("first", "leaf_step", "tree"), node("second", "leaf_step", "first"),
      node("basket", "leaf_basket", "second")};
  return spec;
}

struct Ran {
  RunReport report;
  std::vector<Remark> remarks;
};
Ran run_plan(const GraphSpec& spec, const std::function<void(Runner&)>& meanwhile = {}) {
  const Watchdog watchdog("a filling pass");
  Runner runner(build_plan(spec));
  std::thread other;
  if (meanwhile) other = std::thread([&] { meanwhile(runner); });
  Ran out{runner.run(), {}};
  if (other.joinable()) other.join();
  out.remarks = runner.remarks();
  return out;
}

std::string problems(const GraphSpec& spec) {
  try {
    (void)build_plan(spec);
    return "";
  } catch (const ConfigError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("filling: a source's node goes behind the last one that gives its port") {
  Seen world;
  seen = &world;
  const Plan plan = build_plan(chain(3));
  std::vector<std::string> names;
  for (const PlanNode& n : plan.nodes) names.push_back(n.name);
  CHECK(names == std::vector<std::string>{"tree", "first", "second", "tree.tap", "basket"});
  const PlanNode& tap_node = *test::node_of(plan, "tree.tap");
  CHECK(tap_node.is_inserted);
  CHECK(tap_node.concurrency == 3);
  CHECK(plan.nodes[static_cast<std::size_t>(tap_node.from())].name == "second");
  CHECK(plan.nodes[static_cast<std::size_t>(test::node_of(plan, "basket")->from())].name ==
        "tree.tap");
  // The configuration is stored as written.
  const Value* graph = plan.settings.config.find("graph");
  REQUIRE(graph != nullptr);
  CHECK(graph->find("tree.tap") == nullptr);
  CHECK(graph->find("basket")->find("from")->text() == "second");
  CHECK(build_plan(chain(3, "false")).nodes.size() == 4);
}

TEST_CASE("filling: a graph without one place for the node is refused") {
  Seen world;
  seen = &world;
  const auto says = [](const GraphSpec& spec, const std::string& part) {
    const std::string text = problems(spec);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  GraphSpec two = chain(3);
  two.nodes.push_back(node("other", "leaf_basket", "first"));
  says(
      two,
      "tree.tap: needs a single node that all files go through as leaf, but some go through first, "
      "some through second; let one of them take from the other, or remove one");
  GraphSpec branch = chain(3);
  branch.nodes[3] = node("basket", "leaf_basket", "first");
  branch.nodes.erase(branch.nodes.begin() + 2);
  branch.nodes.push_back(node("basket2", "leaf_basket", "first"));
  CHECK(problems(branch) == "");  // both after the fork
}

TEST_CASE("filling: every item goes through twice, into the sinks once") {
  Seen world;
  seen = &world;
  const Ran ran = run_plan(chain(500));
  CHECK(ran.report.ending == Ending::complete);
  CHECK(ran.report.counts.ok == 500);
  CHECK(ran.report.filling_seconds > 0);
  CHECK(ran.report.filling_seconds <= ran.report.wall_seconds);
  CHECK(world.tapped_before.size() == 500);
  CHECK(world.tapped_after.size() == 500);
  CHECK(world.written.size() == 500);
  CHECK(ran.report.stages.back().items_in == 500);
  CHECK(ran.report.stages.front().items_out == 500);  // of the actual run
  CHECK(world.memory > 0);
  CHECK(world.memory < ran.report.memory_budget);
}

TEST_CASE("filling: no pass where the stage asks for none") {
  Seen world;
  world.fills = false;
  seen = &world;
  const Ran ran = run_plan(chain(50));
  CHECK(ran.report.counts.ok == 50);
  CHECK(ran.report.filling_seconds == 0);
  CHECK(world.tapped_before.size() == 50);
}

TEST_CASE("filling: what fails in the pass fails in the run, and is counted once") {
  Seen world;
  world.step = [](std::size_t i) -> std::optional<ItemError> {
    if (i % 10 == 0) return ItemError::failed("every tenth");
    return std::nullopt;
  };
  seen = &world;
  const Ran ran = run_plan(chain(100));
  CHECK(ran.report.ending == Ending::complete);
  CHECK(ran.report.counts.ok == 90);
  CHECK(ran.report.counts.failed == 10);
  CHECK(ran.remarks.size() == 10);
  CHECK(world.tapped_before.size() == 90);
}

TEST_CASE("filling: the stage may end the pass when it needs no more") {
  Seen world;
  std::atomic<int> left{20};
  Gate ended;
  world.tap = [&](std::size_t, Filling& filling) {
    const int mine = left--;
    if (mine == 1) {
      filling.end();
      ended.open();
    }
    // Items that are faster than the one that ends the pass must not all pass meanwhile.
    if (mine < 1) ended.wait();
  };
  seen = &world;
  const Ran ran = run_plan(chain(2000));
  CHECK(ran.report.counts.ok == 2000);
  CHECK(world.tapped_before.size() >= 20);
  CHECK(world.tapped_before.size() < 2000);
  CHECK(world.written.size() == 2000);
}

TEST_CASE("filling: an error that ends the run does so before anything is written") {
  Seen world;
  world.tap = [](std::size_t i, Filling&) {
    if (i == 30) throw RunError("no more room");
  };
  seen = &world;
  const Ran ran = run_plan(chain(2000));
  CHECK(ran.report.ending == Ending::failed);
  CHECK(ran.report.error == "no more room");
  CHECK(ran.report.counts.not_run == 2000);
  CHECK(world.written.empty());
  CHECK(world.ending == Ending::failed);
}

TEST_CASE("filling: a stop in the pass ends the run") {
  Seen world;
  std::atomic<bool> stopped{false};
  world.tap = [&stopped](std::size_t i, Filling&) {
    // Nothing passes before the stop, so that it comes during the pass.
    while (i > 10 && !stopped) std::this_thread::yield();
  };
  seen = &world;
  const Ran ran = run_plan(chain(2000), [&stopped](Runner& runner) {
    while (runner.progress().counts.closed() < 5) std::this_thread::yield();
    CHECK(runner.progress().is_filling);
    runner.stop();
    stopped = true;
  });
  CHECK(ran.report.ending == Ending::stopped);
  CHECK(ran.report.counts.not_run == 2000);
  CHECK(world.tapped_before.size() < 2000);
  CHECK(world.written.empty());
  CHECK(world.ending == Ending::stopped);
}

}  // namespace melflow::test::filling_test
