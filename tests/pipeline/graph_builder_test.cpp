// The whole plan is checked before anything starts, and every problem has its position.
#include "pipeline/plan/graph_builder.h"
#include "pipeline/plan/plan_memory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "pipeline/base/cpu.h"
#include "tests/pipeline/test_graph.h"
#include "tests/support/plan_node.h"
#include "tests/support/problems.h"

namespace melflow::test::graph_builder_test {
namespace {

std::string problems_of(const Graph& graph, World& world) {
  return problems_in([&] { return build_plan(graph.spec, world.registry); });
}
std::string problems_of(const Graph& graph) {
  World world;
  return problems_of(graph, world);
}

Graph chain() { return Graph("files: numbers; a: step < files; out: keep < a"); }

// Two branches after f.
Graph forked() { return Graph("files: numbers; f: fork < files outputs=2"); }

// A stage whose requirements and properties a test can see; and stages that reject their options.
struct PlainOptions {
  int level = 1;
  std::string node;
  std::string path;
  int hint = 0;
  void describe(Schema& s) {
    s.field("level", level, "").range(0, 9);
    s.field("node", node, "");
    s.field("path", path, "");
    s.field("hint", hint, "").used_with("level: 1", [this] { return level == 1; });
  }
};

constexpr Requirement<double, merge::Largest> kLevel{"level"};
constexpr Property<double> kRate{"rate"};

// A requirement and a property per node.
Requirement<double, merge::Largest> of_node(const std::string& node) { return {node.c_str()}; }
Property<double> seen_by(const std::string& node) { return {node.c_str()}; }

struct Planned {
  std::map<std::string, Requirements> below;
  std::map<std::string, Properties> given;
};

class Planner final : public Transform<test::Number, test::Number> {
 public:
  Planner(PlainOptions options, Planned& seen) : options_(std::move(options)), seen_(seen) {}
  Requirements require(const Requirements& below) const override {
    seen_.below[options_.node] = below;
    Requirements mine = below;
    mine.set(kLevel, std::max(below.get_or(kLevel, 0), double(options_.level)));
    mine.set(of_node(options_.node), 1);
    return mine;
  }
  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    seen_.given[options_.node] = given;
    if (options_.level == 7) check.error("level", "7 does not go with it");
    if (options_.level == 8) check.error("", "the node is wrong as a whole");
    if (options_.level == 6) check.warning("level", "6 is unusual");
    Properties out = given;
    out.set(kRate, given.get_or(kRate, 1) * 2);
    out.set(seen_by(options_.node), required.get_or(kLevel, -1));
    return out;
  }
  Result<std::shared_ptr<const test::Number>> process(std::shared_ptr<const test::Number> in,
                                                      ItemContext&) const override {
    return in;
  }
  StageResources resources() const override {
    if (options_.path.empty()) return {.files_made = {""}};
    return {.files_made = {options_.path, options_.path + ".index"}};
  }
  std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
    return options_.level == 9 ? 2 * source.bytes : 100;
  }

 private:
  const PlainOptions options_;
  Planned& seen_;
};

void add_planner(World& world, Planned& seen) {
  struct Config final : StageConfig {
    explicit Config(Planned& s) : planned(s) { options.describe(bound); }
    const Schema& schema() const override { return bound; }
    std::unique_ptr<Stage> make() const override {
      return std::make_unique<Planner>(options, planned);
    }
    Planned& planned;
    PlainOptions options;
    Schema bound;
  };
  StageInfo info;
  info.name = "planner";
  info.traits = Planner({}, seen).traits();
  info.configure = [&seen] { return std::make_unique<Config>(seen); };
  world.registry.add(std::move(info));
}

Graph::Options level(int n) { return {{"level", std::to_string(n)}}; }

}  // namespace

TEST_CASE("builder: a good chain becomes a plan in topological order, auto filled in") {
  World world;
  // Written starting from the sink: the order of the description does not matter.
  Graph g = Graph(
                "out: keep < a concurrency=3 queue=7; a: step < files; "
                "files: numbers")
                .workers(5);
  const Plan plan = build_plan(g.spec, world.registry);
  REQUIRE(plan.nodes.size() == 3);
  CHECK(plan.nodes[0].name == "files");
  CHECK(plan.nodes[0].concurrency == 1);
  CHECK(plan.nodes[1].name == "a");
  CHECK(plan.nodes[1].concurrency == 5);
  CHECK(plan.nodes[1].queue == 10);  // twice its concurrency
  CHECK(plan.nodes[1].from() == 0);
  CHECK(plan.nodes[1].to == std::vector<int>{2});
  CHECK(plan.nodes[2].concurrency == 3);
  CHECK(plan.nodes[2].queue == 7);
  CHECK(plan.workers == 5);
  CHECK(test::node_of(plan, "a") == &plan.nodes[1]);
  CHECK(test::node_of(plan, "b") == nullptr);
  CHECK(plan.settings.config.find("graph")->find("a")->find("from")->text() == "files");
  CHECK(plan.settings.config.find("graph")->find("out")->find("queue")->text() == "7");
  CHECK(plan.settings.config.find("graph")->find("out")->find("concurrency")->text() == "3");
  // The stored configuration is the same on every machine.
  CHECK(plan.settings.config.find("graph")->find("a")->find("concurrency")->text() == "auto");
  CHECK(to_json(build_plan(g.workers(2).spec, world.registry).settings.config) ==
        to_json(plan.settings.config));
  // Feature settings: those of the stages on the path, without names and options for tuning.
  const Value& settings = plan.nodes[2].stage->feature_settings();
  REQUIRE(settings.items().size() == 3);
  const Value& features = settings.items()[2];
  CHECK(features.find("stage")->text() == "keep");
  CHECK(features.find("concurrency") == nullptr);
  CHECK(features.find("work") == nullptr);  // tuning
  CHECK(plan.nodes[1].stage->feature_settings().items().size() == 2);
}

TEST_CASE("builder: an auto queue has a place for each item the node before may have under way") {
  World world;
  const Graph g = Graph(
      "files: numbers; a: step < files concurrency=9; "
      "b: step < a concurrency=2; out: keep < b concurrency=3");
  const Plan plan = build_plan(g.spec, world.registry);
  CHECK(plan.nodes[1].queue == 18);
  CHECK(plan.nodes[2].queue == 9);
  CHECK(plan.nodes[3].queue == 6);
}

TEST_CASE("builder: an auto queue is stored as auto") {
  World world;
  const Graph g = Graph(
      "files: numbers; a: step < files concurrency=9; "
      "b: step < a concurrency=2 queue=auto; "
      "c: step < b queue=5 start_at=0.3; "
      "out: keep < c concurrency=300");
  const Plan plan = build_plan(g.spec, world.registry);
  struct Row {
    const char *name, *stored, *start_at;
    int places;
  };
  for (const Row& row : {Row{"a", "auto", "0", 18}, Row{"b", "auto", "0", 9},
                         Row{"c", "5", "0.3", 5}, Row{"out", "auto", "0", 600}}) {
    CAPTURE(row.name);
    const PlanNode& n = *test::node_of(plan, row.name);
    CHECK(n.queue == row.places);
    const Value& stored = *plan.settings.config.find("graph")->find(row.name);
    CHECK(stored.find("queue")->text() == row.stored);
    CHECK(stored.find("start_at")->text() == row.start_at);
  }
  const Value& source = *plan.settings.config.find("graph")->find("files");
  CHECK(source.find("queue") == nullptr);
  CHECK(source.find("start_at") == nullptr);
}

TEST_CASE("builder: start_at is for queues whose items hold nothing that others wait for") {
  World world;
  StageInfo info = *world.registry.find("step");
  info.name = "lending";
  info.traits.lends = true;
  world.registry.add(info);
  const auto graph = [](const char* node) {
    return Graph("files: numbers; a: lending < files; out: keep < a").set(node, "start_at", "0.5");
  };
  CHECK(problems_of(graph("a"), world).empty());
  CHECK(problems_of(graph("files"), world)
            .find("files.start_at: numbers is a source and has no queue") != std::string::npos);
  CHECK(problems_of(graph("out"), world)
            .find("out.start_at: what a (lending) gives holds a place on a device") !=
        std::string::npos);
}

TEST_CASE("builder: workers are the cores of this process when nothing is said") {
  World world;
  CHECK(build_plan(chain().spec, world.registry).workers == available_cpus());
  CHECK(available_cpus() >= 1);
}

TEST_CASE("builder: more memory than the machine has is a warning") {
  World world;
  const auto warnings = [&](std::size_t bytes) {
    return build_plan(chain().memory(bytes).spec, world.registry).warnings;
  };
  CHECK(warnings(std::size_t{1} << 20).empty());
  const std::vector<Problem> more = warnings(std::size_t{1} << 60);
  REQUIRE(more.size() == 1);
  CHECK(more.front().message.starts_with(
      "memory.host: 1073741824.0 GiB is more than this machine has ("));
}

TEST_CASE("builder: more memory than a control group allows is a warning that says what fits") {
  constexpr std::uint64_t kMiB = 1 << 20;
  const MemoryLimit machine{1024 * kMiB, ""}, group{1024 * kMiB, "/sys/fs/cgroup/memory.max"};
  CHECK(memory_remark(1024 * kMiB, machine) == "");
  CHECK(memory_remark(1025 * kMiB, machine) ==
        "memory.host: 1.0 GiB is more than this machine has (1.0 GiB)");
  CHECK(memory_remark(1025 * kMiB, {}) == "");
  CHECK(memory_remark(960 * kMiB, group) == "");
  CHECK(memory_remark(1024 * kMiB, group) ==
        "memory.host: 1GiB and up to 64MiB for the program itself are more than its control group, "
        "as of a container or a job, allows (1024MiB, /sys/fs/cgroup/memory.max), so that the "
        "system may end it; 960MiB fit");
  CHECK(memory_remark(64 * kMiB, {50 * kMiB, "/x"})
            .ends_with("(50MiB, /x), so that the system may end it"));
}

TEST_CASE("builder: every kind of problem has its message and its place") {
  struct Case {
    const char* what;
    Graph graph;
    std::string message;
  };
  const std::string cycle =
      "; data flows from the source to the sinks, so one of these nodes must take its input from "
      "another node";
  const std::vector<Case> cases{
      {"unknown stage, nothing near", chain().nodes("b: xxxxxxxxx < a; out2: keep < b"),
       "test.yaml:4:15: b: unknown stage 'xxxxxxxxx'; `melflow stages` lists all stages, and "
       "--plugin FILE adds those of a plug-in"},
      {"unknown common option", chain().node("b", "keep", "a", {{"queu", "3"}}),
       "test.yaml:4:30: b.queu: unknown option of keep. Did you mean 'queue'?"},
      {"option out of range", chain().nodes("b: expand < a blocks=0; o: keep < b"),
       "test.yaml:4:35: b.blocks: 0 is out of range; allowed: 1 to 1000"},
      {"concurrency too large", chain().node("b", "keep", "a", {{"concurrency", "1025"}}),
       "test.yaml:4:35: b.concurrency: 1025 is out of range; allowed: 1 to 1024"},
      {"concurrency of a serial stage",
       chain().nodes("b: gather < a concurrency=2; o: batch_keep < b"),
       "test.yaml:4:35: b.concurrency: 2 is out of range, gather takes at most 1"},
      {"start_at out of range", chain().node("b", "keep", "a", {{"start_at", "1.5"}}),
       "test.yaml:4:35: b.start_at: 1.5 is out of range; allowed: 0 to 1"},
      {"duplicate node", chain().node("out", "keep", "files"),
       "test.yaml:4:3: out: there are two nodes of this name"},
      {"type mismatch with a stage that bridges it", chain().node("b", "batch_keep", "a"),
       "test.yaml:4:25: b.from: batch_keep takes batches, but 'a' (step) gives numbers; put a "
       "gather between them"},
      {"type mismatch that two stages bridge",
       chain().nodes("g: gather < a; b: batch_keep < g; c: batch_keep < files"),
       "test.yaml:6:25: c.from: batch_keep takes batches, but 'files' (numbers) gives numbers; put "
       "a gather between them"},
      {"type mismatch that nothing bridges",
       Graph("files: numbers; g: gather < files; w: to_word < g; "
             "x: keep < w"),
       "test.yaml:3:25: w.from: to_word takes numbers, but 'g' (gather) gives batches\n"
       "test.yaml:4:25: x.from: keep takes numbers, but 'w' (to_word) gives words"},
      {"a stage that makes what there is already",
       Graph("files: numbers; g: gather < files; h: gather < g; "
             "o: batch_keep < h"),
       "test.yaml:3:25: h.from: gather takes numbers, but 'g' (gather) gives batches; remove h, "
       "since 'g' (gather) gives batches already, and write from: g in o"},
      {"two inputs", chain().node("b", "keep", "[a, files]"),
       "test.yaml:4:25: b.from: keep takes one input, but 2 are given (a, files); write a node "
       "with keep for each"},
      {"a join of two ways behind the same output",
       forked().nodes("a: step < f.o0; b: step < f.o0; j: join < [a, b, f.o1]; "
                      "o: keep < j"),
       "test.yaml:5:25: j.from: join joins the outputs of a route or several sources, but every "
       "file comes by both a and b; take one of them, or put a route before them"},
      {"a join of other things",
       forked().nodes("g: gather < f.o0; j: join < [f.o1, g]; o: keep < j"),
       "test.yaml:4:25: j.from: join takes numbers, but 'g' (gather) gives batches"},
      {"a cycle through a join", forked().nodes("a: step < j; j: join < [f.o0, a]; o: keep < f.o1"),
       "test.yaml:3:25: a.from: the graph has a cycle: a -> j -> a" + cycle},
      {"from a sink", chain().node("b", "keep", "out"),
       "test.yaml:4:25: b.from: out (keep) is a sink and gives nothing"},
      {"a source with an input", chain().nodes("b: numbers < a; o: keep < b"),
       "test.yaml:4:25: b.from: numbers is a source and takes no input"},
      {"a source and what is no source",
       Graph("x: numbers; y: numbers; a: step < x; o: keep < [a, y]"),
       "test.yaml:4:25: o.from: keep takes one input, but 2 are given (a, y); write a node with "
       "keep for each"},
      {"sources with other options of the whole run",
       Graph("x: numbers group=2; y: numbers group=3 files_per_task=4; "
             "o: keep < [x, y]"),
       "test.yaml:2:25: y.group: is 3 here and 2 in x; it is the whole run's, so write the same in "
       "all sources\n"
       "test.yaml:2:35: y.files_per_task: is 4 here and auto in x; it is the whole run's, so write "
       "the same in all sources"},
      {"a source with a slash in its name", Graph("x: numbers; y/z: numbers; o: keep < [x, y/z]"),
       "test.yaml:2:3: y/z: with several sources the names of files begin with that of their "
       "source and a slash, so it has none itself; rename the node"},
      {"sources joined twice",
       Graph("x: numbers; y: numbers; j: join < [x, y]; "
             "k: join < [j, y]; o: keep < k"),
       "test.yaml:4:25: k.from: join joins the outputs of a route or several sources, but every "
       "file comes by both j and y; take one of them, or put a route before them"},
      {"no source", Graph("a: step < b; b: step < a; o: keep < b"),
       "test.yaml:1:25: a.from: the graph has a cycle: a -> b -> a" + cycle},
      {"a cycle beside the chain",
       chain().nodes("p: step < r; q: step < p; r: step < q; o: keep < r"),
       "test.yaml:4:25: p.from: the graph has a cycle: p -> q -> r -> p" + cycle},
      {"a node that takes its own output", chain().nodes("p: step < p; o: keep < p"),
       "test.yaml:4:25: p.from: the graph has a cycle: p -> p" + cycle},
      {"nothing at all", Graph(),
       "the graph has no source; it starts with a stage such as numbers"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.what));
    CHECK(problems_of(c.graph) == c.message);
  }
}

TEST_CASE("builder: all problems of a plan come in one error, in the order of the file") {
  const Graph g = Graph(
      "files: numberz; a: step < filse queue=0 wrok=1; "
      "a: expand < files blocks=1001; "
      "out: keep < [a, files] concurrency=-1");
  CHECK(
      problems_of(g) ==
      "test.yaml:1:15: files: unknown stage 'numberz'. Did you mean 'numbers'?\n"
      "test.yaml:2:25: a.from: there is no node 'filse'. Did you mean 'files'?\n"
      "test.yaml:2:35: a.queue: 0 is out of range; allowed: 1 to 1048576\n"
      "test.yaml:2:40: a.wrok: unknown option of step. Did you mean 'work'?\n"
      "test.yaml:3:3: a: there are two nodes of this name\n"
      "test.yaml:3:35: a.blocks: 1001 is out of range; allowed: 1 to 1000\n"
      "test.yaml:4:25: out.from: keep takes one input, but 2 are given (a, files); write a "
      "node with keep for each\n"
      "test.yaml:4:35: out.concurrency: -1 is out of range; allowed: 1 to 1024; write auto for as "
      "many as there are workers");
}

TEST_CASE("builder: a budget below what the largest block needs is refused at its place") {
  // step + expand: 300 + 500 bytes per block, and two blocks while one is cut from the other.
  Graph g = Graph(
      "files: numbers; a: step < files size=300; "
      "b: expand < a size=500; out: keep < b");
  World world;
  CHECK(problems_of(g.memory(1600), world).empty());
  const Plan plan = build_plan(g.spec, world.registry);
  CHECK(plan.largest_block == 800);
  CHECK(admission_cost(plan, {"x", 5}) == 800);
  const std::string message = problems_of(g.memory(1599), world);
  CHECK(message.starts_with("test.yaml:100:9: memory.host: 1599B is too little"));
  CHECK(message.find("1.6 kB") == std::string::npos);
  CHECK(
      message.ends_with("this pipeline needs 1600B, or smaller blocks (b.size, a.size); "
                        "a size without a unit is in bytes. Did you mean '1599MiB'?"));
}

TEST_CASE("builder: a plan whose items grow without bound is refused, naming what is missing") {
  World world;
  Planned seen;
  add_planner(world, seen);
  const Graph g = Graph(
                      "files: numbers size=0; a: planner < files level=9; "
                      "b: step < a; out: keep < b")
                      .memory(std::size_t{1} << 40);
  CHECK(problems_of(g, world) ==
        "test.yaml:100:9: memory.host: no amount is enough, since the output of a (planner) grows "
        "with the file; put a stage that limits the size of a block before the stages after it");
}

TEST_CASE("builder: without a stage that cuts files into blocks, one block of memory is enough") {
  Graph g = Graph("files: numbers; a: step < files size=300; out: keep < a");
  CHECK(problems_of(g.memory(300)).empty());
  CHECK_FALSE(problems_of(g.memory(299)).empty());
}

TEST_CASE("builder: stages that give several for one stand where memory is provided for them") {
  const auto chain = [](const std::vector<std::string>& stages) {
    Graph g;
    std::string from;
    for (const std::string& stage : stages) {
      const std::string name = from.empty() ? "files" : fmt::format("n{}", g.spec.nodes.size());
      if (from.empty())
        g.node(name, stage);
      else
        g.node(name, stage, from);
      from = name;
    }
    return problems_of(g.node("out", stages.back() == "gather" ? "batch_keep" : "keep", from));
  };
  CHECK(chain({"numbers", "divide", "expand", "divide"}).empty());
  CHECK(chain({"numbers", "expand", "expand", "parts"}).empty());
  CHECK(chain({"numbers", "expand", "divide", "step", "expand", "expand"}) ==
        "test.yaml:6:3: n5: expand cuts its input into blocks, but it comes after n4 (expand), and "
        "is "
        "number 4 in a row that gives several blocks or items for one; at most 3 can");
  CHECK(chain({"numbers", "divide", "parts"}) ==
        "test.yaml:3:3: n2: parts cuts recordings into records of their own, but it comes after n1 "
        "(divide), which makes several items of one; use one of the two");
  CHECK(
      chain({"numbers", "parts", "divide"}) ==
      "test.yaml:3:3: n2: divide makes several items of one, but it comes after n1 (parts), which "
      "cuts recordings into records of their own; use one of the two");
  CHECK(
      chain({"numbers", "expand", "parts", "expand"}) ==
      "test.yaml:4:3: n3: expand cuts its input into blocks, but it comes after n2 (parts), which "
      "cuts recordings into records of their own; use one of the two");
}

TEST_CASE("builder: what a stage finds wrong stands at the option or the node it names") {
  World world;
  Planned seen;
  add_planner(world, seen);
  const auto graph = [](int of) {
    return Graph("files: numbers")
        .node("p", "planner", "files", level(of))
        .node("out", "keep", "p");
  };
  CHECK(problems_of(graph(7), world) == "test.yaml:2:35: p.level: 7 does not go with it");
  CHECK(problems_of(graph(8), world) == "test.yaml:2:3: p: the node is wrong as a whole");
  const Plan plan = build_plan(graph(6).spec, world.registry);
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].str() == "test.yaml:2:35: p.level: 6 is unusual");
}

TEST_CASE("builder: the same work twice is a warning, at the node that comes second") {
  const auto warnings = [](const Graph& graph) {
    World world;
    std::string out;
    for (const Problem& w : build_plan(graph.spec, world.registry).warnings) out += w.str() + "\n";
    return out;
  };
  const auto two = [](Graph::Options a, Graph::Options b) {
    for (Graph::Options* options : {&a, &b}) options->emplace_back("node", "same");
    return Graph("files: numbers")
        .node("a", "expand", "files", a)
        .node("b", "expand", "files", b)
        .nodes("out_a: keep < a; out_b: keep < b");
  };
  CHECK(warnings(two({{"blocks", "2"}, {"queue", "3"}}, {{"blocks", "2"}})) ==
        "test.yaml:3:3: b: does again what a (line 2) does with the same input; what takes b can "
        "take a\n");
  CHECK(warnings(two({{"blocks", "2"}}, {{"blocks", "3"}})).empty());
  CHECK(warnings(two({}, {{"on_failure", "branch"}})).empty());
  // Two outputs of the same rows may be intended.
  CHECK(warnings(Graph("files: numbers; out_a: keep < files; out_b: keep < files")).empty());
}

TEST_CASE("builder: an option without effect is a warning") {
  World world;
  Planned seen;
  add_planner(world, seen);
  for (const int of : {1, 2}) {
    CAPTURE(of);
    Graph::Options options = level(of);
    options.push_back({"hint", "3"});
    const Plan plan = build_plan(Graph("files: numbers")
                                     .node("p", "planner", "files", options)
                                     .node("out", "keep", "p")
                                     .spec,
                                 world.registry);
    REQUIRE(plan.warnings.size() == (of == 1 ? 0 : 1));
    if (of == 2)
      CHECK(plan.warnings[0].message ==
            "p.hint: has no effect without level: 1; add that, or remove this");
  }
}

TEST_CASE("builder: requirements go up from all branches, properties come down into each") {
  World world;
  Planned seen;
  add_planner(world, seen);
  const Graph g = Graph("files: numbers")
                      .node("top", "planner", "files", level(1))
                      .node("left", "planner", "top", level(3))
                      .node("right", "planner", "top", level(5))
                      .node("deep", "planner", "right", level(2))
                      .nodes("out1: keep < left; out2: keep < deep");
  (void)build_plan(g.spec, world.registry);
  CHECK(seen.below["top"].get(kLevel) == 5);  // the larger of the two
  CHECK(seen.below["top"].get(of_node("left")) == 1);
  CHECK(seen.below["top"].get(of_node("right")) == 1);
  CHECK(seen.below["top"].get(of_node("deep")) == 1);
  CHECK_FALSE(seen.below["left"].get(of_node("right")).has_value());
  CHECK(seen.below["right"].get(kLevel) == 2);
  CHECK(seen.given["left"].get(kRate) == 2);
  CHECK(seen.given["deep"].get(kRate) == 4);
  CHECK(seen.given["left"].get(seen_by("top")) == 5);
  CHECK_FALSE(seen.given["left"].get(seen_by("right")).has_value());
}

TEST_CASE("builder: two nodes cannot make the same file, however its path is written") {
  struct Row {
    const char *one, *other, *problem;
  };
  const Row rows[] = {
      {"out", "out2", ""},
      {"", "", ""},
      {"out", "out.index2", ""},
      {"out", "out", "b.path: out is also written by a (planner); give it another path"},
      {"out", "./x/../out",
       "b.path: ./x/../out is also written by a (planner); give it another path"},
      {"out", "out.index",
       "b.path: out.index is also written by a (planner); give it another path"},
      {"out.index", "out",
       "b.path: out.index is also written by a (planner); give it another path"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.one));
    CAPTURE(std::string(row.other));
    World world;
    Planned seen;
    add_planner(world, seen);
    const Graph g = Graph("files: numbers")
                        .node("a", "planner", "files", {{"path", row.one}})
                        .node("b", "planner", "a", {{"path", row.other}})
                        .node("out", "keep", "b");
    const std::string problem = row.problem;
    CHECK(problems_of(g, world) == (problem.empty() ? "" : "test.yaml:3:35: " + problem));
  }
  // An absolute and a relative path can name the same file.
  World world;
  Planned seen;
  add_planner(world, seen);
  const std::string absolute = std::filesystem::current_path() / "out";
  const Graph g = Graph("files: numbers")
                      .node("a", "planner", "files", {{"path", absolute}})
                      .nodes("b: planner < a path=out; out: keep < b");
  CHECK(problems_of(g, world) ==
        "test.yaml:3:35: b.path: out is also written by a (planner); give it another path");
}

TEST_CASE("builder: a node that stands for a chain gets its input at the front, gives at the end") {
  World world;
  StageInfo info = *world.registry.find("step");
  info.name = "triple";
  info.expand = [](const NodeSpec& spec) {
    std::vector<NodeSpec> out(3, spec);
    const auto set = [](NodeSpec& n, const char* key, const std::string& value) {
      for (Value::Entry& e : n.options.entries())
        if (e.key == key) e.value = Value::scalar(value, e.value.mark());
    };
    out[0].name = spec.name + ".before";
    out[2].name = spec.name + ".behind";
    for (NodeSpec& n : out) {
      set(n, "stage", "step");
      set(n, "node", n.name);
    }
    set(out[1], "from", out[0].name);
    set(out[2], "from", out[1].name);
    return out;
  };
  world.registry.add(info);
  const Graph g = Graph(
      "files: numbers items=50; a: triple < files; b: step < a; "
      "out: keep < b; early: keep < a");
  const Plan plan = test::make_plan(g, world);
  std::vector<std::string> edges;
  for (const PlanNode& n : plan.nodes)
    if (n.from() >= 0)
      edges.push_back(plan.nodes[static_cast<std::size_t>(n.from())].name + " -> " + n.name);
  CHECK(edges == std::vector<std::string>{"files -> a.before", "a.before -> a", "a -> a.behind",
                                          "a.behind -> b", "b -> out", "a.behind -> early"});
  World running;
  running.registry.add(info);
  const test::Outcomes o = test::run(g, running);
  CHECK(o.report.counts.ok == 50);
  for (const test::Row& row : running.rows("early"))
    CHECK(row.value ==
          test::stepped(test::stepped(test::stepped(test::first_value(row.item), "a.before"), "a"),
                        "a.behind"));

  // A problem in a node of the chain is reported with that node's name and its original position.
  Graph bad = g;
  bad.set("a", "levle", "3");
  CHECK(problems_of(bad, world)
            .starts_with("test.yaml:2:3: a.before.levle: unknown option of "
                         "step; `melflow stages step` lists its options\n"));
  // The names of the chain's nodes are taken.
  CHECK(problems_of(Graph(g).nodes("a.behind: step < b; last: keep < a.behind"), world)
            .find("a.behind: there are two nodes of this name") != std::string::npos);
}

TEST_CASE("builder: max_failures is a count or a share") {
  struct Row {
    const char* text;
    std::optional<std::size_t> count;
    std::optional<double> share;
    bool good;
  };
  for (const Row& row : {Row{"10", 10, {}, true},
                         {"0", 0, {}, true},
                         {"1%", {}, 0.01, true},
                         {"0.5", {}, 0.5, true},
                         {"100%", {}, 1.0, true},
                         {"101%", {}, {}, false},
                         {"1.5", {}, {}, false},
                         {"-1", {}, {}, false},
                         {"few", {}, {}, false},
                         {"%", {}, {}, false}}) {
    CAPTURE(std::string(row.text));
    CountOrShare limit;
    const std::string why = OptionType<CountOrShare>::parse(Value::scalar(row.text), limit);
    CHECK(why.empty() == row.good);
    if (!row.good) continue;
    CHECK(limit.count == row.count);
    CHECK(limit.share == row.share);
    CountOrShare back;
    CHECK(OptionType<CountOrShare>::parse(OptionType<CountOrShare>::echo(limit), back).empty());
    CHECK(back.count == limit.count);
    CHECK(back.share == limit.share);
  }
}

}  // namespace melflow::test::graph_builder_test
