// Parts of graphs in files of their own: the plan is that of the graph with the nodes written out,
// and what is wrong is told at its place in the file where it stands.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/config_stages.h"

namespace config_fragments_test {

using namespace melflow;
using namespace melflow::test;

namespace {

const char* const kPart =
    "version: 1\n"
    "parameters: {GAIN: 2, MODE: null}\n"
    "outputs: {once: first, twice: second}\n"
    "graph:\n"
    "  first: {stage: scale, from: in, gain: \"${GAIN}\", mode: \"${MODE}\"}\n"
    "  second: {stage: scale, from: first, gain: \"${MELFLOW_OUTER:-8}\", mode: \"${MODE}\"}\n";

class Files {
 public:
  explicit Files(const std::map<std::string, std::string>& more = {}) {
    folder_.write("sub/part.yaml", kPart);
    for (const auto& [name, text] : more) folder_.write(name, text);
  }
  [[nodiscard]] Plan load(const std::string& graph, const LoadOptions& options = {}) const {
    return load_plan_text("version: 1\ngraph:\n" + graph, folder_ / "t.yaml", options,
                          config_registry());
  }
  // Problems, one a line, with paths below the folder.
  [[nodiscard]] std::string problems(const std::string& graph,
                                     const LoadOptions& options = {}) const {
    try {
      (void)load(graph, options);
    } catch (const ConfigError& e) {
      std::string text = e.what();
      for (std::size_t at; (at = text.find(folder_.path() + "/")) != text.npos;)
        text.erase(at, folder_.path().size() + 1);
      return text;
    }
    return "";
  }

 private:
  TempFolder folder_;
};

const std::string kList = "  files: {stage: list, root: a}\n";

std::string config(const Plan& plan) { return to_json(plan.settings.config); }

}  // namespace

TEST_CASE("fragments: the plan is that of the nodes written out") {
  const Files files;
  const std::string written = kList +
                              "  p_first: {stage: scale, from: files, gain: 2, mode: hard}\n"
                              "  p_second: {stage: scale, from: p_first, gain: 8, mode: hard}\n"
                              "  one: {stage: keep, from: p_first, path: a}\n"
                              "  two: {stage: keep, from: p_second, path: b}\n";
  const std::string used = kList +
                           "  p: {use: sub/part.yaml, from: files, with: {MODE: hard}}\n"
                           "  one: {stage: keep, from: p.once, path: a}\n"
                           "  two: {stage: keep, from: p.twice, path: b}\n";
  CHECK(config(files.load(used)) == config(files.load(written)));
  // Parameters, variables of the run, and options of nodes inside, from outside.
  LoadOptions options;
  options.vars = {{"MELFLOW_OUTER", "3"}};
  options.sets = {{"p.with.GAIN", "5"}, {"p_second.mode", "soft"}, {"p_first.queue", "4"}};
  const Plan plan = files.load(used, options);
  CHECK(option(plan, "p_first", "gain") == "5");
  CHECK(option(plan, "p_second", "gain") == "3");
  CHECK(option(plan, "p_second", "mode") == R"("soft")");
  CHECK(option(plan, "p_first", "mode") == R"("hard")");
  CHECK(plan.nodes[1].queue == 4);
}

TEST_CASE("fragments: several uses, fragments in fragments, a source and a sink in one") {
  const Files files(
      {{"outer.yaml",
        "version: 1\n"
        "parameters: {WHAT: hard}\n"
        "input: items\n"
        "output: b\n"
        "graph:\n"
        "  a: {use: sub/part.yaml, from: items, with: {MODE: \"${WHAT}\"}}\n"
        "  b: {stage: scale, from: a.twice, gain: 9}\n"},
       {"source.yaml",
        "version: 1\noutput: files\ngraph:\n  files: {stage: list, root: \"$$x\"}\n"},
       {"sink.yaml", "version: 1\ngraph:\n  out: {stage: keep, from: in, path: \"$${A}\"}\n"}});
  const Plan plan = files.load(
      "  corpus: {use: source.yaml}\n"
      "  x: {use: outer.yaml, from: corpus}\n"
      "  y: {use: outer.yaml, from: x, with: {WHAT: soft}}\n"
      "  end: {use: sink.yaml, from: y}\n");
  std::vector<std::string> names;
  for (const PlanNode& n : plan.nodes) names.push_back(n.name);
  CHECK(names == std::vector<std::string>{"corpus_files", "x_a_first", "x_a_second", "x_b",
                                          "y_a_first", "y_a_second", "y_b", "end_out"});
  for (std::size_t i = 1; i < plan.nodes.size(); ++i)
    CHECK(plan.nodes[i].from() == static_cast<int>(i) - 1);
  CHECK(option(plan, "y_a_first", "mode") == R"("soft")");
  // What was filled in is not looked at again.
  CHECK(option(plan, "corpus_files", "root") == R"("$x")");
  CHECK(option(plan, "end_out", "path") == R"("${A}")");
}

TEST_CASE("fragments: what is wrong is told with its place") {
  const Files files(
      {{"self.yaml",
        "version: 1\ngraph:\n  a: {use: self.yaml, from: in}\n  b: {stage: keep, from: a}\n"},
       {"bad.yaml",
        "parameters: [A]\ninput: {}\noutpt: x\ngraph:\n  a: {stage: scale, from: inn, gain: x}\n"},
       {"empty.yaml", "version: 1\ngraph: {}\n"},
       {"broken.yaml", "version: 1\ngraph: {a: {\n"},
       {"none.yaml", "version: 1\ngraph:\n  a: {stage: keep, from: in, path: b}\n"},
       {"away.yaml", "version: 1\noutput: b\ngraph:\n  a: {stage: list, root: b}\n"}});
  const auto with = [&](const std::string& use, const std::string& out = "p.once") {
    return files.problems(kList + "  p: {" + use + "}\n  out: {stage: keep, from: " + out +
                          ", path: b}\n");
  };
  CHECK(with("use: sub/part.yaml, from: files") ==
        "t.yaml:4:3: p: the fragment's parameter MODE has no default; set it: with: {MODE: VALUE}");
  // A parameter that is given as "not set" is given.
  for (const char* none : {"null", "~", "none"})
    CHECK(with(fmt::format("use: sub/part.yaml, from: files, with: {{MODE: {}}}", none)) ==
          with("use: sub/part.yaml, from: files, with: {MODE: 'none'}"));
  CHECK(with("use: sub/part.yaml, from: files, with: {MODE: null}").find("'none' is not one of") !=
        std::string::npos);
  CHECK(with("use: sub/part.yaml, from: files, with: {MODE: hard, GANE: 1}") ==
        "t.yaml:4:59: p.with.GANE: the fragment has no such parameter; it has GAIN, MODE");
  CHECK(with("use: sub/part.yaml, with: {MODE: hard}") ==
        "t.yaml:4:3: p: 'from' is missing; sub/part.yaml takes an input: write from: NODE");
  CHECK(with("use: sub/part.yaml, from: files, with: {MODE: hard}, queue: 3") ==
        "t.yaml:4:60: p.queue: a node that uses a fragment has only the options use, from and "
        "with; set queue on a node in the fragment, or by --set p_NODE.queue");
  CHECK(with("use: sub/part.yaml, from: files, with: {MODE: hard}", "p.thrice") ==
        "t.yaml:5:28: out.from: there is no output 'p.thrice'; the fragment gives p.once, p.twice");
  CHECK(with("use: sub/part.yaml, from: files, with: {MODE: hardly}", "p.twice") ==
        "sub/part.yaml:5:58: p_first.mode: 'hardly' is not one of soft, hard. Did you mean 'hard'? "
        "Given at t.yaml:4:53\n"
        "sub/part.yaml:6:74: p_second.mode: 'hardly' is not one of soft, hard. Did you mean "
        "'hard'? Given at t.yaml:4:53");
  CHECK(
      with("use: sub/part.yaml, stage: keep, from: files") ==
      "t.yaml:4:27: p: has both 'stage' and 'use'; a node runs a stage or uses a fragment: remove "
      "one of the two");
  CHECK(with("use: sub/prat.yaml, from: files") ==
        "t.yaml:4:12: p.use: sub/prat.yaml: there is no such file. Did you mean 'sub/part.yaml'? "
        "The path begins at the folder of the file that it is written in");
  CHECK(with("use: sub, from: files") ==
        "t.yaml:4:12: p.use: sub: this is a folder; name a YAML file");
  CHECK(with("use: self.yaml, from: files", "p") ==
        "self.yaml:3:12: a.use: self.yaml uses itself; put the nodes that it is to use into a file "
        "of their own");
  CHECK(with("use: empty.yaml, from: files", "p")
            .starts_with("empty.yaml:2:8: graph: there are no nodes in this fragment"));
  CHECK(with("use: none.yaml, from: files", "p") ==
        "t.yaml:5:28: out.from: the fragment that p uses gives nothing: it has no key output");
  const std::string away = with("use: away.yaml, from: files", "p");
  CHECK(away.find("away.yaml:2:9: output: there is no node 'b' in this fragment") != away.npos);
  CHECK(away.find("t.yaml:4:29: p.from: away.yaml takes no input: none of its nodes has 'from: "
                  "in'") != away.npos);
  const std::string bad = with("use: bad.yaml, from: files", "p");
  for (const char* part :
       {"bad.yaml:1:13: parameters: this is not a map", "bad.yaml:2:8: input: this is not a name",
        "bad.yaml:3:1: outpt: a fragment has no such key. Did you mean 'output'?",
        "? The keys are version, parameters, input, output, outputs, graph",
        "bad.yaml:1:1: version: write 'version: 1' at the top of a fragment",
        "bad.yaml:5:27: a.from: there is no node 'inn' in this fragment"}) {
    CAPTURE(bad);
    CAPTURE(std::string(part));
    CHECK(bad.find(part) != bad.npos);
  }
  CHECK(with("use: broken.yaml, from: files", "p").starts_with("broken.yaml:"));
}

TEST_CASE("fragments: what would have no end is refused") {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 12; ++i)
    files[fmt::format("f{}.yaml", i)] =
        fmt::format("version: 1\noutput: n\ngraph:\n  n: {{use: f{}.yaml, from: in}}\n", i + 1);
  files["step.yaml"] = "version: 1\noutput: n\ngraph:\n  n: {stage: scale, from: in}\n";
  const Files there(files);
  CHECK(there.problems(kList + "  p: {use: f0.yaml, from: files}\n") ==
        "f7.yaml:4:12: n.use: at most 8 fragments may be inside each other");
  std::string graph = kList;
  for (int i = 0; i < 258; ++i) graph += fmt::format("  p{}: {{use: step.yaml, from: files}}\n", i);
  CHECK(
      there.problems(graph) ==
      "t.yaml:260:15: p256.use: at most 256 nodes of a graph may use fragments, with those inside "
      "of fragments");
}

}  // namespace config_fragments_test
