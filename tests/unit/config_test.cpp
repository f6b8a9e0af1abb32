// A configuration becomes a plan, or problems with their exact positions.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "config/load.h"
#include "pipeline/base/warned_config_error.h"
#include "tests/support/problems.h"
#include "tests/unit/config_stages.h"

namespace melflow::test::config_test {

TEST_CASE("config: a plan has what the text says") {
  const Plan plan = load(
      "version: 1\n"
      "memory: {host: 64MiB}\n"
      "max_failures: 1%\n"
      "workers: 3\n"
      "graph:\n"
      "  files: {stage: list, root: here, include: [a, b]}\n"
      "  scale: {stage: scale, from: files, concurrency: 2, queue: 5, gain: -3.5, block: 4KiB,\n"
      "          mode: hard, strict: yes, span: {length: 4}}\n"
      "  out: {stage: keep, from: scale}\n");
  CHECK(plan.host_memory == 64U << 20);
  CHECK(*plan.max_failures.share == doctest::Approx(0.01));
  CHECK(plan.workers == 3);
  REQUIRE(plan.nodes.size() == 3);
  CHECK(plan.nodes[1].name == "scale");
  CHECK(plan.nodes[1].mark.str() == "t.yaml:7:3");
  CHECK(plan.nodes[1].concurrency == 2);
  CHECK(plan.nodes[1].queue == 5);
  CHECK(option(plan, "files", "include") == R"(["a", "b"])");
  CHECK(option(plan, "scale", "gain") == "-3.5");
  CHECK(option(plan, "scale", "block") == R"("4KiB")");
  CHECK(option(plan, "scale", "mode") == R"("hard")");
  CHECK(option(plan, "scale", "strict") == "true");
  CHECK(option(plan, "scale", "span.length") == "4");
}

TEST_CASE("config: without top-level options the defaults stand") {
  const Plan plan = load(with_scale(kScale));
  CHECK(plan.host_memory == std::size_t{1} << 30);
  CHECK_FALSE(plan.max_failures.count.has_value());
  CHECK_FALSE(plan.max_failures.share.has_value());
  CHECK(plan.workers >= 1);
  CHECK(plan.warnings.empty());
}

TEST_CASE("config: each problem of the text stands at its place") {
  struct Row {
    const char* name;
    std::string text;
    std::string problem;
    int others = 0;  // further problems that follow from it
  };
  const std::string scale = kScale;
  const Row rows[] = {
      {"memory is a word of our own", with_scale(scale, "version: 1\nmemory: VALUE"),
       "t.yaml:2:9: memory: 'VALUE' is not a map of options; write memory: {host: VALUE}, "
       "or --set memory.host=VALUE"},
      {"no graph", "version: 1\n",
       "t.yaml:1:1: graph: there are no nodes in it; `melflow init FILE` writes a pipeline to "
       "start from"},
      {"an empty graph", "version: 1\ngraph:\n",
       "t.yaml:2:1: graph: there are no nodes in it; `melflow init FILE` writes a pipeline to "
       "start from"},
      {"the graph is a list", "version: 1\ngraph: [a]\n",
       "t.yaml:2:8: graph: nodes are not a list; write each as NAME: {stage: STAGE, from: NODE}, "
       "without the '-'"},
      {"a node is empty", with_scale("  scale:"),
       "t.yaml:4:3: scale: a node must be a map with 'stage' and its options, which are indented "
       "further than its name: scale: {stage: STAGE, from: NODE}"},
      {"in a group", with_scale("  scale: {stage: scale, from: files, span: {length: 0}}"),
       "t.yaml:4:53: scale.span.length: 0 is out of range; allowed: 1 to 100"},
      {"found by the stage itself", with_scale("  scale: {stage: scale, from: files, gain: 7}"),
       "t.yaml:4:44: scale.gain: 7 does not go with it"},
      {"a second document", "version: 1\n---\ngraph: {}\n",
       "t.yaml:2:1: a second document begins here (after '---', or by its indentation), but a "
       "configuration is one; put all keys into the first"},
      {"a node given twice", with_scale(scale + "\n" + scale),
       "t.yaml:5:3: 'scale' is already given at line 4, column 3; remove one of the two"},
      {"a key at the top given twice", with_scale(scale, "version: 1\nversion: 1"),
       "t.yaml:2:1: 'version' is already given at line 1, column 1; remove one of the two"},
      {"a tag", with_scale("  scale: {stage: scale, from: files, gain: !big 3}"),
       "t.yaml:4:44: the tag !big has no meaning in a pipeline; remove it"},
      {"a list as key", with_scale(scale, "version: 1\n? [a, b]\n: 3"),
       "t.yaml:2:3: this key is a map or a list; a key must be a text"},
      {"an alias inside itself", with_scale(scale, "version: &v [*v]"),
       "t.yaml:1:14: this alias is inside the value that it refers to; write out here what is "
       "meant",
       1},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const std::vector<std::string> all = lines(problems_of(row.text));
    INFO(fmt::format("{}", fmt::join(all, "\n")));
    CHECK(std::count(all.begin(), all.end(), row.problem) == 1);
    CHECK(static_cast<int>(all.size()) == 1 + row.others);
  }
}

TEST_CASE("config: a budget that is too small is a problem where the budget stands") {
  CHECK(problems_of(with_scale(kScale, "version: 1\nmemory: {host: 512B}"))
            .starts_with("t.yaml:2:16: memory.host: 512B is too little"));
  LoadOptions options;
  options.sets = {{"memory.host", "512B"}};
  CHECK(problems_of(with_scale(kScale), options)
            .starts_with("--set: memory.host: 512B is too little"));
}

TEST_CASE("config: a quote that the end of the file closes is a problem") {
  CHECK(problems_of("version: 1\ngraph:\n  files: {stage: list}\n  out:\n    stage: keep\n    "
                    "from: files\n    path: 'out.h5\n") ==
        "t.yaml:7:11: this text begins with ' but has no ' at its end");
  // Doubled and escaped quotes do not end a quoted text.
  const std::string head = "version: 1\ngraph:\n  files: {stage: list}\n";
  CHECK(problems_of(head + "  out: {stage: keep, from: files, path: 'it''s'}\n").empty());
  CHECK(problems_of(head + "  out: {stage: keep, from: files, path: \"a\\\"b\"}\n").empty());
  CHECK(problems_of(head + "  out: {stage: keep, from: files, path: &p \"a\"}\n").empty());
}

TEST_CASE("config: problems of every level come out in one go") {
  LoadOptions options;
  options.sets = {{"scal.gain", "1"}, {"scale.gain", "99"}};
  options.vars = {{"UNUSED", "1"}};
  CHECK(problems_of("version: 1\n"
                    "wrokers: 2\n"
                    "graph:\n"
                    "  files: {stage: list, root: \"${MELFLOW_TEST_NOT_SET}\", root: b}\n"
                    "  scale: {stage: scale, from: fiels, mode: loud}\n"
                    "  out: {stage: keep, from: scale}\n",
                    options) ==
        "--var: UNUSED: nothing in the configuration uses the variable ${UNUSED}; use it there, or "
        "omit --var\n"
        "--set: scal.gain: there is no node 'scal' and no such key at the top level. Did you mean "
        "'scale'?\n"
        "--set: scale.gain: 99 is out of range; allowed: -60 to 60 dB\n"
        "t.yaml:2:1: wrokers: there is no such key at the top level. Did you mean 'workers'? The "
        "keys are version, memory, max_failures, workers, expect, plugins, graph, tests\n"
        "t.yaml:4:30: the variable MELFLOW_TEST_NOT_SET is not set; give --var "
        "MELFLOW_TEST_NOT_SET=VALUE, set it in the environment, or write a default: "
        "${MELFLOW_TEST_NOT_SET:-VALUE}\n"
        "t.yaml:4:57: 'root' is already given at line 4, column 24; remove one of the two\n"
        "t.yaml:5:31: scale.from: there is no node 'fiels'. Did you mean 'files'?\n"
        "t.yaml:5:44: scale.mode: 'loud' is not one of soft, hard");
}

TEST_CASE("config: warnings of the plan have their place") {
  const Plan plan = load(with_scale("  scale: {stage: scale, from: files, gain: 6}"));
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].str() == "t.yaml:4:44: scale.gain: 6 is unusual");
}

TEST_CASE("config: warnings stand beside errors, but not what follows from an error") {
  const auto beside = [](const std::string& top, const std::string& scale, const std::string& out) {
    std::string text;
    try {
      load("version: 1\n" + top +
           "graph:\n  files: {stage: list, root: a}\n  scale: {stage: scale, from: files" + scale +
           "}\n  out: {stage: keep, from: " + out + "}\n");
    } catch (const ConfigError& e) {
      for (const Problem& w : warnings_beside(e)) text += w.str();
      CHECK(!e.problems().empty());
    }
    return text;
  };
  const std::string unusual = "scale.gain: 6 is unusual";
  CHECK(beside("", ", gain: 6", "scale, nothing: 1") == "t.yaml:4:44: " + unusual);
  CHECK(beside("wrokers: 1\n", ", gain: 6", "scale") == "t.yaml:5:44: " + unusual);
  CHECK(beside("", ", gain: 6, mode: loud", "scale") == "");  // of the same node
  CHECK(beside("", ", gain: 6", "scal") == "");               // the graph is unknown
  CHECK(beside("", ", gain: 5", "scale, nothing: 1") == "");
}

TEST_CASE("config: a file is read by its path, and one that cannot be read is a problem") {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("melflow_config_test_{}", getpid());
  std::filesystem::create_directories(folder);
  const auto file = folder / "one.yaml";
  std::ofstream(file) << with_scale(kScale, "version: 1\nnot: 1");
  const auto problem = [&](const std::filesystem::path& path) {
    return problems_in([&] { (void)load_plan(path, {}, config_registry()); });
  };
  CHECK(problem(file) ==
        file.string() +
            ":2:1: not: there is no such key at the top level; the keys are "
            "version, memory, max_failures, workers, expect, plugins, graph, tests");
  CHECK(problem(folder) == folder.string() + ": this is a folder; name a YAML file");
  CHECK(problem(folder / "two.yaml") ==
        (folder / "two.yaml").string() + ": cannot be read: No such file or directory");
  std::ofstream(file) << with_scale(kScale);
  CHECK(load_plan(file, {}, config_registry()).nodes.size() == 3);
  std::ofstream(file) << "\xEF\xBB\xBF" + with_scale(kScale);  // with a byte order mark
  CHECK(load_plan(file, {}, config_registry()).nodes.size() == 3);
  std::ofstream(file) << "";
  CHECK(problem(file).find("this configuration is empty") != std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace melflow::test::config_test
