// Extreme configurations: too deep, too long, too many entries, bytes that are no text. All are
// refused at once, with a message of bounded length and a position.
#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/format.h>

#include "config/document.h"
#include "config/load.h"
#include "tests/unit/config_stages.h"

namespace melflow::test::config_limits_test {
namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Returns the problems of a text as a whole, without its stages.
std::string refusal(const std::string& text) {
  return read_document(text, "t.yaml").problems.str();
}

}  // namespace

TEST_CASE(
    "config limits: a text that nobody writes is refused at the place where it begins to be") {
  struct Row {
    const char* name;
    std::string text, problem;
  };
  const Row rows[] = {
      {"lists in lists", repeated("[", 400) + repeated("]", 400),
       "t.yaml:1:65: maps and lists may be nested 64 deep; this one is deeper"},
      {"maps in maps", repeated("{a: ", 1000),
       "t.yaml:1:253: maps and lists may be nested 64 deep; this one is deeper"},
      {"lists of dashes", repeated("- ", 1000),
       "t.yaml:1:129: maps and lists may be nested 64 deep; this one is deeper"},
      {"keys that are maps", repeated("? ", 1000),
       "t.yaml:1:129: maps and lists may be nested 64 deep; this one is deeper"},
      {"many values", "a: [" + repeated("x,", 30'000) + "]",
       "t.yaml:1:40003: here the configuration has more than 20000 keys and values, the maximum "
       "(what an alias refers to is counted each time)"},
      {"aliases of a long text",
       "a: &a " + std::string(100'000, 'x') + "\nb: [" + repeated("*a,", 1000) + "]\n",
       "t.yaml:2:125: with its aliases resolved, the configuration has more than 4 MiB of "
       "text here, which is the most"},
      {"a long text", "a: |\n  " + repeated("x\n  ", 300'000),
       "t.yaml:262144:4: the configuration is longer than 1 MiB, which is the most that is read"},
      {"a character nought", std::string("version: 1\ngr\0aph: {}\n", 22),
       "t.yaml:2:3: a configuration cannot have control characters in it; remove U+0000 here"},
      {"what the parser takes for the end", "version: 1\n# \x04\ngraph: {}\n",
       "t.yaml:2:3: a configuration cannot have control characters in it; remove U+0004 here"},
      {"an escape code", "a: \x1b[31mred\n",
       "t.yaml:1:4: a configuration cannot have control characters in it; remove U+001B here"},
      {"Latin-1", "a: 1\nb: M\xFCnchen\n",
       "t.yaml:2:5: the byte 0xfc is not part of UTF-8, which configurations are written in; save "
       "it as UTF-8, or where a path has this byte write ${0xFC}"},
      {"UTF-16",
       std::string("\xFF\xFE"
                   "a\0:\0",
                   6),
       "t.yaml:1:1: the byte 0xff is not part of UTF-8, which configurations are written in; save "
       "it as UTF-8, or where a path has this byte write ${0xFF}"},
      {"a nought as an escape", R"(a: "x\0y")",
       R"(t.yaml:1:4: a text cannot have the character \0 in it; remove it)"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(refusal(row.text) == row.problem);
  }
}

TEST_CASE("config limits: what is just below them is read") {
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')).empty());
  CHECK(refusal("a: [" + repeated("x,", 19'000) + "]").empty());
  const Document d = read_document(
      "\xEF\xBB\xBF"
      "a: \"M\xC3\xBCnchen\"\n",
      "t.yaml");
  CHECK(d.problems.str() == "");
  CHECK(d.root.find("a")->text() == "M\xC3\xBCnchen");
}

TEST_CASE("config limits: many keys, also given twice or merged, are read in a moment") {
  std::string keys;
  for (int i = 0; i < 9'000; ++i) keys += fmt::format("k{}: 1\n", i);
  CHECK(refusal(keys).empty());
  std::string twice;
  for (int i = 0; i < 9'000; ++i) twice += "k: 1\n";
  const std::string said = problems_of(twice);
  CHECK(said.starts_with("t.yaml:2:1: "));
  CHECK(said.ends_with("there are too many problems; the check stopped here"));
  CHECK(std::count(said.begin(), said.end(), '\n') <= static_cast<long>(Problems::kMost));
}

TEST_CASE("config limits: a graph of many nodes is refused before they are looked at") {
  std::string text =
      "version: 1\nx: &x {stage: scale, from: files}\ngraph:\n  files: {stage: list}\n";
  for (int i = 0; i < 3000; ++i) text += fmt::format("  n{}: *x\n", i);
  CHECK(problems_of(text) ==
        "t.yaml:2:1: x: there is no such key at the top level; the keys are version, memory, "
        "max_failures, workers, expect, plugins, graph, tests\n"
        "t.yaml:260:3: graph: has 3001 nodes; at most 256 are allowed");
}

TEST_CASE("config limits: variables inside each other, and what they grow to") {
  const auto with_root = [](const std::string& root) {
    return "version: 1\ngraph:\n  files: {stage: list, root: '" + root +
           "'}\n  out: {stage: keep, from: files}\n";
  };
  const auto nested = [](std::size_t depth) {
    return repeated("${MELFLOW_NOT:-", depth) + "x" + std::string(depth, '}');
  };
  CHECK(option(load(with_root(nested(16))), "files", "root") == R"("x")");
  for (const std::size_t depth : {17, 40'000})
    CHECK(problems_of(with_root(nested(depth))) ==
          "t.yaml:3:30: defaults of variables may be nested 16 deep; this one is "
          "deeper");
  CHECK(problems_of(with_root(repeated("${MELFLOW_NOT:-", 50'000))) ==
        "t.yaml:3:30: this '${' has no '}' after it; write ${NAME} for a variable, $$ for the "
        "character $");
  LoadOptions options;
  options.vars = {{"LONG", std::string(100'000, 'x')}};
  CHECK(problems_of(with_root(repeated("${LONG}", 10'000)), options) ==
        "t.yaml:3:30: with its variables filled in, the configuration has more than 4 MiB of text "
        "here, which is the most");
}

TEST_CASE("config limits: a long value is not told whole") {
  const std::string longer(1'000'000, 'y');
  const std::string shown = std::string(100, 'y') + "… (1000000 bytes)";
  struct Row {
    std::string scale, problem;
  };
  const Row rows[] = {
      {"gain: " + longer, "scale.gain: '" + shown + "' is not a number; allowed: -60 to 60 dB"},
      {"mode: " + longer, "scale.mode: '" + shown + "' is not one of soft, hard"},
      {"block: " + std::string(1'000'000, '9'),
       "scale.block: '" + std::string(100, '9') +
           "… (1000000 bytes)' is not a size such as 65536, 64KiB or 1.5GiB"},
      {"strict: " + longer, "scale.strict: '" + shown + "' is not true or false"},
      {"queue: " + std::string(100'000, '9'),
       "scale.queue: " + std::string(100, '9') +
           "… (100000 bytes) is too large; allowed: 1 to 1048576"},
      {"from: " + longer, "scale.from: there is no node '" + shown + "'"},
      {longer + ": 1", "scale." + shown + ": unknown option of scale"},
      {"gain: !" + longer + " 3", "the tag !" + std::string(99, 'y') +
                                      "… (1000001 bytes) has no meaning in a pipeline; remove it"},
  };
  for (const Row& row : rows) {
    const std::string all = problems_of(with_scale(
        "  scale:\n    stage: scale\n" +
        std::string(row.scale.starts_with("from") ? "" : "    from: files\n") +
        (row.scale.ends_with(": 1") ? "    ? " + longer + "\n    : 1" : "    " + row.scale)));
    INFO(row.problem << "\n" << all.substr(0, 1000));
    CHECK(all.find(": " + row.problem) != std::string::npos);
    CHECK(all.size() < 2000);
  }
}

TEST_CASE("config limits: --set and --var of any kind") {
  struct Row {
    Assignment set;
    std::string problem;
  };
  const Row rows[] = {
      {{repeated("a.", 60'000) + "a", "1"},
       "--set: " + repeated("a.", 50) +
           "… (120001 bytes): no option has a name of more than 64 parts"},
      {{std::string(100'000, 'n') + ".a", "1"},
       "--set: " + std::string(100, 'n') + "… (100002 bytes): there is no node '" +
           std::string(100, 'n') + "… (100000 bytes)' and no such key at the top level"},
      {{"scale.gain", repeated("[", 400) + repeated("]", 400)},
       "--set: scale.gain: column 65: maps and lists may be nested 64 deep; this one "
       "is deeper"},
      {{"scale.gain", "\"\x01\""},
       "--set: scale.gain: column 2: a configuration cannot have control characters in it; remove "
       "U+0001 here"},
      {{"scale.gain", "1e999"},
       "--set: scale.gain: '1e999' is not a number; allowed: -60 to 60 dB"},
      {{"scale.queue", "-99999999999999999999"},
       "--set: scale.queue: -99999999999999999999 is too small; allowed: 1 to 1048576"},
      {{"scale.gain", repeated("${A:-", 30'000)},
       "--set: this '${' has no '}' after it; write ${NAME} for a variable, $$ for the character "
       "$"},
  };
  for (const Row& row : rows) {
    LoadOptions options;
    options.sets = {row.set};
    const std::string all = problems_of(with_scale(kScale), options);
    CHECK(all.substr(0, all.find('\n')) == row.problem);
  }
  LoadOptions options;
  options.vars = {{std::string(100'000, 'V'), "1"}};
  CHECK(problems_of(with_scale(kScale), options).size() < 500);
}

TEST_CASE("config limits: a device in the place of a file is refused") {
  CHECK_THROWS_WITH_AS((void)load_plan("/dev/zero", {}, config_registry()),
                       "/dev/zero: this is a device, not a file", ConfigError);
}

}  // namespace melflow::test::config_limits_test
