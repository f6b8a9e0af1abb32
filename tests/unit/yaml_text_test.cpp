#include "config/yaml_text.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/variables.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"
#include "pipeline/base/value.h"
#include "stages/corpus/text_lines.h"

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

// A map of the texts, as it is read with its variables filled in; "" for one that cannot be read.
std::string read_again(const std::string& flow) {
  Document document = read_document("version: 1\nall: " + flow + "\n", "p.yaml");
  Variables({}).expand(document.root, document.problems);
  const Value* all = document.root.find("all");
  const bool is_whole = document.complete && document.problems.empty() && all != nullptr &&
                        document.root.entries().size() == 2;
  return is_whole ? seen(*all) : "";
}

}  // namespace

TEST_CASE("yaml text: whatever bytes a text has, it is in one line, and read as the same text") {
  std::vector<std::string> texts{
      "",
      "<<",
      "null",
      "~",
      "a: b\n  stage: x # \"'",
      "${HOME}$$${0xE9}$",
      "\\x2f\\u000a\\",
      "\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\xEF\xBB\xBF\xEF\xBF\xBF\r\t\x7F\x1b[2J",
      "caf\xE9 caf\xC3\xA9 \xF0\x9F\x8E\xB5 \xED\xA0\x80",
      "\xFF"};
  for (int c = 1; c < 256; ++c) texts.push_back("x" + std::string(1, static_cast<char>(c)));
  std::mt19937 draw(1);
  const std::string often = "\n\r\"'\\$${}[]#:,&*!|> \xC3\xA9\xE2\x80\xA8\xFF";
  for (int i = 0; i < 2000; ++i) {
    std::string& text = texts.emplace_back();
    for (auto n = 1 + draw() % 12; n > 0; --n)
      text += draw() % 2 == 0 ? often[draw() % often.size()] : static_cast<char>(1 + draw() % 255);
  }
  for (const std::string& text : texts) {
    CAPTURE(one_line(text));
    const Value quoted = Value::scalar(text, {}, true);
    Value map = Value::map({});
    map.set(is_utf8(text) ? text : "key", Value::list({quoted, Value::scalar("word")}));
    const std::string flow = yaml_flow(map);
    CHECK(one_line(flow) == flow);
    CHECK(read_again(flow) == seen(map));
  }
}

TEST_CASE("yaml text: a merge key in quotes is a key") {
  CHECK(read_again("{\"<<\": a}") == "{<<=a,}");
}

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
  CHECK(text.find("{host: 64MiB}") != text.npos);
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
