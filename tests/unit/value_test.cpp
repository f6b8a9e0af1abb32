#include "pipeline/base/value.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "pipeline/base/text.h"

namespace melflow::value_test {
namespace {
Mark mark(int line, int column) {
  return {std::make_shared<const std::string>("a.yaml"), line, column};
}
}  // namespace

TEST_CASE("value: a mark names file, line and column, as far as they are known") {
  CHECK(mark(12, 5).str() == "a.yaml:12:5");
  CHECK(mark(0, 0).str() == "a.yaml");
  CHECK(Mark{}.str().empty());
}

TEST_CASE("value: a default value is null and has no entries") {
  const Value v;
  CHECK(v.is_null());
  CHECK(v.find("x") == nullptr);
  CHECK(v.text().empty());
}

TEST_CASE("value: set turns a null into a map, replaces, and keeps the order of first appearance") {
  Value v;
  v.set("b", Value::scalar("1"));
  v.set("a", Value::scalar("2"));
  v.set("b", Value::scalar("3"));
  REQUIRE(v.is_map());
  REQUIRE(v.entries().size() == 2);
  CHECK(v.entries()[0].key == "b");
  CHECK(v.entries()[0].value.text() == "3");
  CHECK(v.find("a")->text() == "2");
  v.find("a")->set_mark(mark(3, 1));
  CHECK(v.find("a")->mark().line == 3);
}

TEST_CASE("value: JSON writes numbers and words bare only where JSON's grammar has them") {
  struct Row {
    const char* text;
    bool quoted;
    const char* json;
  };
  for (const Row& row : {Row{"1", false, "1"},
                         {"-0.5", false, "-0.5"},
                         {"1e-10", false, "1e-10"},
                         {"0", false, "0"},
                         {"true", false, "true"},
                         {"null", false, "null"},
                         {"1", true, "\"1\""},
                         {"true", true, "\"true\""},
                         {"007", false, "\"007\""},
                         {".5", false, "\".5\""},
                         {"5.", false, "\"5.\""},
                         {"1.e3", false, "\"1.e3\""},
                         {"+1", false, "\"+1\""},
                         {"-", false, "\"-\""},
                         {"0x10", false, "\"0x10\""},
                         {"inf", false, "\"inf\""},
                         {"nan", false, "\"nan\""},
                         {"1e999", false, "\"1e999\""},
                         {"-01", false, "\"-01\""},
                         {"12px", false, "\"12px\""},
                         {"", false, "\"\""},
                         {"a \"b\" \\ c\n\t\x01", false, "\"a \\\"b\\\" \\\\ c\\n\\t\\u0001\""},
                         {" 1", false, "\" 1\""},
                         {"1\n", false, "\"1\\n\""},
                         {"tru", false, "\"tru\""},
                         {"d\xe9j\xe0\"", false, "\"d\xe9j\xe0\\\"\""},
                         {"\xed\xb0\x80", false, "\"\xed\xb0\x80\""},
                         {"Käse", false, "\"Käse\""}}) {
    CAPTURE(std::string(row.text));
    CAPTURE(row.quoted);
    CHECK(to_json(Value::scalar(row.text, {}, row.quoted)) == row.json);
  }
}

TEST_CASE("value: JSON of lists and maps keeps the order and quotes the keys") {
  Value v = Value::map({});
  v.set("z", Value::list({Value::scalar("1"), Value{}, Value::list({})}));
  v.set("a\"", Value::map({}));
  CHECK(to_json(v) == R"({"z": [1, null, []], "a\"": {}})");
}

TEST_CASE("value: any text becomes JSON; bytes that are no UTF-8 stay for who escapes them") {
  const std::string bytes(
      "\x00\x1F\x22\x5C\x7F\x80\x8F\x90\x9F\xA0\xBF\xC1\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF1\xF4\xF5"
      "\xFF",
      23);
  std::string wrong;
  std::size_t as_they_were = 0;
  for (const char a : bytes)
    for (const char b : bytes)
      for (const char c : bytes)
        for (const char d : {'\x22', '\x80', '\xBF', '\xC2'}) {
          const std::string text{a, b, c, d};
          const std::string json = to_json(Value::scalar(text, {}, true));
          const auto plain = nlohmann::json::parse(json, nullptr, false);
          const auto read = nlohmann::json::parse(without_escaped_bytes(utf8_or_escaped(json)));
          const bool is_same = read.get<std::string>() == text;
          if (is_same) ++as_they_were;
          if (is_same == plain.is_discarded()) wrong += json + " ";
        }
  CHECK(wrong == "");
  CHECK(as_they_were > 125);  // all texts of the first five bytes and the quotation mark, and more
}

}  // namespace melflow::value_test
