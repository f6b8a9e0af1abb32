#include "config/yaml_text.h"

#include <doctest/doctest.h>

#include "config/document.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/value.h"

namespace melflow::yaml_text_test {
namespace {

// Returns a value as melflow sees it; where it matters, quoted texts are marked.
std::string seen(const Value& value) {
  if (value.is_null()) return "~";
  if (value.is_scalar()) return (value.quoted() ? "'" : "") + value.text();
  std::string out = value.is_list() ? "[" : "{";
  for (const Value& item : value.items()) out += seen(item) + ",";
  for (const Value::Entry& e : value.entries()) out += e.key + "=" + seen(e.value) + ",";
  return out + (value.is_list() ? "]" : "}");
}

}  // namespace

TEST_CASE(
    "yaml text: numbers, sizes and words stay bare, all else is in quotes, dollars are doubled") {
  const Value read =
      read_document(
          "version: 1\nmemory: {host: 64MiB}\nworkers: null\n"
          "graph:\n  a: {stage: x, rate: 16000, floor: -1.5e-3, part: 70%, auto: auto}\n"
          "  b: {from: [a, a.long], text: \"12\", path: \"x $ y: # 'é' \\\" \\n\", empty: ''}\n",
          "p.yaml")
          .root;
  std::vector<Secret> none;
  const std::string text = yaml_text(stored_settings(read, none));
  CHECK(none.empty());
  CHECK(text.find("x $$ y") != text.npos);
  CHECK(text.find("\"host\": 64MiB") != text.npos);
  const Document again = read_document(text, "again.yaml");
  REQUIRE(again.complete);
  CHECK(again.problems.empty());
  std::string expected = seen(read), found = seen(again.root);
  const auto one_dollar = [](std::string& of) {
    for (std::size_t at = 0; (at = of.find("$$")) != of.npos;) of.erase(at, 1);
  };
  one_dollar(found);
  const auto without = [](std::string& of, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = of.find(what)) != of.npos;) of.replace(at, what.size(), by);
  };
  without(found, "'a.long", "a.long");  // a word with a point is a word
  CHECK(found == expected);
}

}  // namespace melflow::yaml_text_test
