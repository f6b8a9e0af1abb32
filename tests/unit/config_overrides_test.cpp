// Changes to a configuration from outside (variables, --set, --workers) and from inside (aliases).
#include <doctest/doctest.h>

#include <cstdlib>

#include <fmt/format.h>

#include "config/document.h"
#include "tests/support/plan_node.h"
#include "tests/unit/config_stages.h"

namespace melflow::test::config_overrides_test {
namespace {

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("config: variables come from --var, then the environment, then the default") {
  const auto root_of = [](const std::string& text, const LoadOptions& options = {}) {
    const Plan plan = load("version: 1\ngraph:\n  files:\n    stage: list\n    root: " + text +
                               "\n  out: {stage: keep, from: files}\n",
                           options);
    return option(plan, "files", "root");
  };
  LoadOptions given;
  given.vars = {{"MELFLOW_A", "first"}, {"MELFLOW_A", "given"}};
  CHECK(root_of("${MELFLOW_A:-x}") == R"("x")");
  CHECK(root_of("${MELFLOW_A:-x}", given) == R"("given")");
  const Environment set("MELFLOW_A", "set");
  CHECK(root_of("${MELFLOW_A}") == R"("set")");
  CHECK(root_of("${MELFLOW_A}", given) == R"("given")");
  const Environment empty("MELFLOW_EMPTY", "");
  CHECK(root_of("${MELFLOW_EMPTY:-x}") == R"("x")");
  CHECK(root_of("a${MELFLOW_EMPTY}b") == R"("ab")");
  const Environment twice("MELFLOW_TWICE", "${MELFLOW_A} $$");

  struct Row {
    const char *text, *value;
  };
  const Row rows[] = {
      {"'${MELFLOW_A}/${MELFLOW_A}.h5'", R"("set/set.h5")"},
      {"\"<${MELFLOW_A}>\"", R"("<set>")"},
      {"${MELFLOW_NOT:-${MELFLOW_A}/y}/z", R"("set/y/z")"},
      {"${MELFLOW_NOT:-${MELFLOW_NOT:-deep}}", R"("deep")"},
      {"${MELFLOW_NOT:-}", R"("")"},
      {"cost$$5 $${X}", R"("cost$5 ${X}")"},
      {"${MELFLOW_TWICE}", R"("${MELFLOW_A} $$")"},  // inserted text is not expanded again
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(root_of(row.text) == row.value);
  }
}

TEST_CASE("config: a variable can be a number, and null") {
  LoadOptions options;
  options.vars = {{"GAIN", "12"}, {"SPAN", "null"}};
  const Plan plan = load(with_scale("  scale:\n    stage: scale\n    from: files\n"
                                    "    gain: ${GAIN}\n    span: ${SPAN}"),
                         options);
  CHECK(option(plan, "scale", "gain") == "12");
  CHECK(option(plan, "scale", "span") == "null");
  // Between braces YAML needs quotes around a variable.
  options.vars.pop_back();
  const Plan braces =
      load(with_scale("  scale: {stage: scale, from: files, gain: \"${GAIN}\"}"), options);
  CHECK(option(braces, "scale", "gain") == "12");
}

TEST_CASE("config: quotes around one variable and nothing else are not those of a text") {
  LoadOptions options;
  options.vars = {{"GAIN", "12"}, {"SPAN", "null"}};
  const Plan plan =
      load(with_scale("  scale: {stage: scale, from: files, gain: \"${GAIN}\", span: \"${SPAN}\"}"),
           options);
  CHECK(option(plan, "scale", "gain") == "12");
  CHECK(option(plan, "scale", "span") == "null");
  options.vars = {{"GAIN", "12"}};
  CHECK(problems_of(with_scale("  scale: {stage: scale, from: files, gain: \"${GAIN}0\"}"),
                    options) ==
        "t.yaml:4:44: scale.gain: '120' is text because of its quotes; remove the quotes");
}

TEST_CASE("config: a variable that is wrong is a problem at its place and nothing else is") {
  struct Row {
    const char *text, *message;
  };
  const Row rows[] = {
      {"${MELFLOW_TEST_NOT_SET}",
       "the variable MELFLOW_TEST_NOT_SET is not set; give --var MELFLOW_TEST_NOT_SET=VALUE, set "
       "it in the environment, or write a default: ${MELFLOW_TEST_NOT_SET:-VALUE}"},
      {"${}",
       "'${}' is not a variable; write ${NAME} or ${NAME:-default}, or ${0x80} to ${0xFF} for "
       "a byte that is not UTF-8"},
      {"${1X}",
       "'${1X}' is not a variable; write ${NAME} or ${NAME:-default}, or ${0x80} to ${0xFF} for "
       "a byte that is not UTF-8"},
      {"${A-b}",
       "'${A-b}' is not a variable; write ${NAME} or ${NAME:-default}, or ${0x80} to ${0xFF} for "
       "a byte that is not UTF-8"},
      {"${0x41}",
       "'${0x41}' is not a variable; write ${NAME} or ${NAME:-default}, or ${0x80} to ${0xFF} for "
       "a byte that is not UTF-8"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    // As the stage's name or as a number, it must not cause a second problem, either.
    CHECK(problems_of(with_scale(fmt::format("  scale:\n    stage: scale\n    from: files\n"
                                             "    gain: {}",
                                             row.text))) ==
          fmt::format("t.yaml:7:11: {}", row.message));
    CHECK(problems_of(
              with_scale(fmt::format("  scale:\n    stage: {}\n    from: files", row.text))) ==
          fmt::format("t.yaml:5:12: {}", row.message));
  }
}

TEST_CASE("config: --set overrides and adds options") {
  LoadOptions options;
  options.sets = {{"scale.gain", "1"},
                  {"scale.gain", "2"},
                  {"graph.scale.mode", "hard"},
                  {"scale.span.length", "8"},
                  {"scale.span.hop", "4"},
                  {"memory.host", "2GiB"},
                  {"max_failures", "7"},
                  {"files.include", "[\"**/*.wav\", b]"},
                  {"out.path", "**/a#b: c"},
                  {"scale.queue", "9"},
                  {"workers", "5"}};
  const Plan plan = load(with_scale(kScale), options);
  CHECK(option(plan, "scale", "gain") == "2");
  CHECK(option(plan, "scale", "mode") == R"("hard")");
  CHECK(option(plan, "scale", "span.length") == "8");
  CHECK(option(plan, "scale", "span.hop") == "4");
  CHECK(option(plan, "files", "include") == R"(["**/*.wav", "b"])");
  CHECK(option(plan, "out", "path") == R"("**/a#b: c")");
  CHECK(plan.host_memory == std::size_t{2} << 30);
  CHECK(*plan.max_failures.count == 7);
  CHECK(plan.workers == 5);
  CHECK(test::node_of(plan, "scale")->queue == 9);
}

TEST_CASE("config: --set with null, a variable and a quoted text") {
  LoadOptions options;
  options.sets = {{"scale.span", "null"}, {"out.path", "${MELFLOW_P}/x"}, {"files.root", "'null'"}};
  options.vars = {{"MELFLOW_P", "p"}};
  const Plan plan =
      load(with_scale("  scale: {stage: scale, from: files, span: {length: 3}}"), options);
  CHECK(option(plan, "scale", "span") == "null");
  CHECK(option(plan, "out", "path") == R"("p/x")");
  CHECK(option(plan, "files", "root") == R"("null")");
}

TEST_CASE("config: a value that is missing is refused where null would mean the default") {
  constexpr const char* kMissing = "scale.span: has no value; write one, or null for the default";
  LoadOptions options;
  options.sets = {{"scale.span", ""}};
  CHECK(problems_of(with_scale("  scale: {stage: scale, from: files}"), options) ==
        std::string("--set: ") + kMissing);
  options.sets = {{"workers", ""}};
  CHECK(problems_of(with_scale("  scale: {stage: scale, from: files}"), options)
            .find("workers: has no value") != std::string::npos);
  for (const char* none : {"null", "~", "Null", "NULL"}) {
    CAPTURE(none);
    const Plan plan =
        load(with_scale(fmt::format("  scale: {{stage: scale, from: files, span: {}}}", none)));
    CHECK(option(plan, "scale", "span") == "null");
  }
  for (const char* text : {"  scale: {stage: scale, from: files, span: }",
                           "  scale:\n    span:\n    stage: scale\n    from: files",
                           "  scale:\n    stage: scale\n    from: files\n    span:  # later"})
    CHECK(problems_of(with_scale(text)).find(kMissing) != std::string::npos);
}

TEST_CASE("config: a --set that leads nowhere is a problem and changes nothing") {
  struct Row {
    Assignment set;
    const char* problem;
  };
  const Row rows[] = {
      {{"memry.host", "1"},
       "--set: memry.host: there is no node 'memry' and no such key at the top level. Did you mean "
       "'memory'?"},
      {{"graph.scael.gain", "1"},
       "--set: graph.scael.gain: there is no node 'scael' and no such key at the top level. Did "
       "you mean 'scale'?"},
      {{"scale..gain", "1"},
       "--set: scale..gain: this names no option; an option has a name like mel.n_mels"},
      {{"scale.gain", "7"}, "--set: scale.gain: 7 does not go with it"},
      {{"scale.span.length", "0"},
       "--set: scale.span.length: 0 is out of range; allowed: 1 to 100"},
  };
  for (const Row& row : rows) {
    LoadOptions options;
    options.sets = {row.set};
    const std::string all = problems_of(with_scale(kScale), options);
    CHECK(all.substr(0, all.find('\n')) == row.problem);
  }
}

TEST_CASE("config: workers of the command line come before those of the file") {
  LoadOptions options;
  options.workers = 2;
  CHECK(load(with_scale(kScale, "version: 1\nworkers: 3"), options).workers == 2);
}

TEST_CASE("config: aliases stand for their anchor, and << merges under the entry's own keys") {
  const Plan plan = load(
      "version: 1\n"
      "graph:\n"
      "  files: {stage: list, root: &where here}\n"
      "  one: &base {stage: scale, from: files, gain: 3, mode: hard}\n"
      "  two: {<<: *base, from: one, gain: 4}\n"
      "  three: {<<: [{gain: 5}, *base], from: two}\n"
      "  out: {stage: keep, from: three, path: *where}\n");
  CHECK(option(plan, "out", "path") == R"("here")");
  CHECK(option(plan, "two", "gain") == "4");
  CHECK(option(plan, "two", "mode") == R"("hard")");
  CHECK(option(plan, "three", "gain") == "5");
}

TEST_CASE("config: a problem in an alias stands at the anchor, once for each node") {
  CHECK(problems_of("version: 1\n"
                    "graph:\n"
                    "  files: {stage: list}\n"
                    "  one: {stage: scale, from: files, span: &s {length: \"${MELFLOW_NOT}\"}}\n"
                    "  two: {stage: scale, from: one, span: *s}\n"
                    "  out: {stage: keep, from: two}\n") ==
        "t.yaml:4:54: the variable MELFLOW_NOT is not set; give --var MELFLOW_NOT=VALUE, set it in "
        "the environment, or write a default: ${MELFLOW_NOT:-VALUE}");
}

TEST_CASE("config: aliases of aliases end before they fill the memory") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i)
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  const Document d = read_document(text, "t.yaml");
  CHECK_FALSE(d.complete);
  CHECK(d.problems.str() ==
        "t.yaml:6:15: here the configuration has more than 20000 keys and values, the maximum "
        "(what an alias refers to is counted each time)");
}

}  // namespace melflow::test::config_overrides_test
