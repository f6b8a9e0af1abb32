#include "stages/corpus/name_rule.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/printing.h"

namespace melflow::name_rule_test {
namespace {

std::string found(const std::string& pattern, const std::string& path) {
  CHECK(NameRule::problem(pattern) == "");
  return std::string(NameRule(pattern).name_of(path, ""));
}

}  // namespace

TEST_CASE("name rule: the name that an expression finds in a path") {
  CHECK(found("/(spk[0-9]+)_", "en/spk12_3.wav") == "spk12");
  CHECK(found("^([a-z]+)/", "EN/a.wav") == "");
  CHECK(found("(a)?b", "b") == "");
  CHECK(found("(?:a|b)(.)$", "xbc") == "c");
  CHECK(found("(?i)/(X)/", "a/x/b") == "x");
  // A character is one of UTF-8 or, in a path that is not UTF-8, a byte.
  CHECK(found("^(.)", "\xC3\xA9t\xC3\xA9.wav") == "\xC3\xA9");
  CHECK(found("^([\xC3\xA9\xC3\xA8])", "\xC3\xA8.wav") == "\xC3\xA8");
  CHECK(found("^(.*)/", "caf\xE9/a.wav") == "caf\xE9");
  CHECK(found("/(\xC3\xA9)", "caf\xE9/\xC3\xA9") == "\xC3\xA9");
}

TEST_CASE("name rule: no expression and no path takes long, or the stack") {
  const std::string many(100000, 'a');
  CHECK(found("((?:a+)+)b", many) == "");
  CHECK(found("((?:a|aa)*)c", many) == "");
  CHECK(found("^((?:.*/)*)x", std::string(33000, '/') + "x").size() == 33000);
  std::string deep = "(a)";
  for (int i = 0; i < 5000; ++i) deep = "(?:" + deep + ")";
  CHECK(found(deep, "a") == "a");
}

TEST_CASE("name rule: what cannot be an expression, and what to do") {
  const std::string special =
      "; correct it, or write \\ before each special character that is to match itself";
  struct Row {
    std::string pattern, problem;
  };
  const Row rows[] = {
      {"(a", "'(a' is not a regular expression: missing ): (a" + special},
      {"(a)[", "'(a)[' is not a regular expression: missing ]: [" + special},
      {"(a)(b)", "'(a)(b)' has 2 groups in ( ); it must have one, which marks the name"},
      {"(?:a)", "'(?:a)' has 0 groups in ( ); it must have one, which marks the name"},
      {"(a)(?=b)",
       "'(a)(?=b)' is not a regular expression: invalid perl operator: (?=; lookaheads and "
       "lookbehinds, (?= (?! (?<= (?<!, are not known (docs/pipelines.md)"},
      {"(?<!b)(a)",
       "'(?<!b)(a)' is not a regular expression: invalid perl operator: (?<; lookaheads and "
       "lookbehinds, (?= (?! (?<= (?<!, are not known (docs/pipelines.md)"},
      {"(a)\\1",
       "'(a)\\1' is not a regular expression: invalid escape sequence: \\1; backreferences, \\1 to "
       "\\9, are not known (docs/pipelines.md)"},
  };
  for (const Row& row : rows) CHECK(NameRule::problem(row.pattern) == row.problem);
  CHECK(NameRule::problem("((?:(?:a{1000}){1000}){1000})").starts_with("'((?:(?:a{1000})"));
}

}  // namespace melflow::name_rule_test
