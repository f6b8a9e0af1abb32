#include "stages/corpus/json_lines.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::json_lines_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text, const std::vector<std::string>& columns) {
  const TempFolder folder;
  const auto table = open_table(folder.write("t.jsonl", text), {});
  Rows out;
  while (table->next()) {
    out.emplace_back();
    for (const std::string& c : columns) out.back().push_back(table->cell(c));
  }
  return out;
}

std::string complaint(const std::string& text) {
  const TempFolder folder;
  try {
    const auto table = open_table(folder.write("t.jsonl", text), {"path"});
    while (table->next()) static_cast<void>(table->cell("path"));
  } catch (const RunError& e) {
    return std::string(e.what()).substr(folder.path().size() + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("json lines: text, numbers, null, lists, and names that are missing") {
  CHECK(rows_of("{\"path\": \"a b.wav\", \"n\": 1}\n\n{\"n\": -0.25, \"path\": \"\\u00e9\"}",
                {"path", "n"}) == Rows{{"a b.wav", "1"}, {"\xC3\xA9", "-0.25"}});
  CHECK(rows_of("\xEF\xBB\xBF{\"a\": null, \"b\": true}\r\n{\"b\": 1e3, \"c\": {}}\n",
                {"a", "b"}) == Rows{{"", "true"}, {"", "1000.0"}});
  CHECK(rows_of("{\"a\": [\"x\", 2], \"b\": []}\n", {"a", "b"}) == Rows{{"x\x1F"
                                                                         "2",
                                                                         ""}});
}

TEST_CASE("json lines: what is no table says where") {
  CHECK(complaint("") == "t.jsonl: this file is empty, a JSON object a line is expected");
  CHECK(complaint("{\"path\": \"a\"}\n{\"path\": \n") ==
        "t.jsonl:2: this is not a JSON object; one per line is expected");
  CHECK(complaint("[1]\n") ==
        "t.jsonl:1: this is not a JSON object; one per line is expected (jq -c '.[]' writes a list "
        "so)");
  CHECK(
      complaint("\n{\"file\": 1, \"label\": 2}\n") ==
      "t.jsonl:2: there is no 'path'; the object has file, label; where file has the paths, write "
      "columns_are: {path: file}");
  CHECK(complaint("{\"path\": \"a\"}\n{\"path\": {}}\n") ==
        "t.jsonl:2: 'path' is neither text, a number nor a list of these");
}

TEST_CASE("json lines: a bad line is left behind, and lines without a name are told") {
  const TempFolder folder;
  const std::string path = folder.write("t.jsonl",
                                        "{\"path\": \"a\", \"text\": \"x\", \"n\": 1}\n{\"path\": "
                                        "\"b\", \"n\": {}}\n{\n{\"path\": \"c\"}\n");
  const auto table = open_table(path, {"path"});
  REQUIRE(table->next());
  REQUIRE(table->next());
  CHECK_THROWS_AS(static_cast<void>(table->cell("n")), BadLine);
  CHECK(table->cell("path") == "b");  // which what is not read does not fail
  CHECK_THROWS_AS(table->next(), BadLine);
  CHECK(table->cell("path").empty());
  REQUIRE(table->next());
  CHECK(table->cell("path") == "c");
  CHECK(table->line() == 4);
  CHECK(table->remarks({0, 1}) ==
        std::vector<std::string>{path +
                                 ": 2 of 3 lines have no 'text' (lines 2, 4); it is empty there"});
  CHECK(table->remarks({0}).empty());
}

TEST_CASE("json lines: a bad value fails its line alone, the first line's too") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"path": "P", "a": "x\u0000y"})",
       "'a' has a zero byte, which cannot be stored; take it out"},
      {R"({"path": "P", "a": ["x", "\u0000"]})",
       "'a' has a zero byte, which cannot be stored; take it out"},
      {R"({"path": "P\u0000.wav", "a": "x"})",
       "'path' has a zero byte, which cannot be stored; take it out"},
      {R"({"path": ["P"], "a": "x"})", "'path' is a list; write a line for each of its items"},
      {R"({"path": "P", "a": {}})", "'a' is neither text, a number nor a list of these"},
  };
  const TempFolder folder;
  const std::string good = "{\"path\": \"G\", \"a\": \"z\"}\n";
  for (const auto& [line, why] : rows)
    for (const bool is_first : {true, false}) {
      CAPTURE(line);
      CAPTURE(is_first);
      const std::string bad = line + std::string("\n");
      const std::string path = folder.write("t.jsonl", is_first ? bad + good : good + bad);
      const auto table = open_table(path, {"path"});
      std::string message;
      int rows_read = 0;
      for (bool is_row = true; is_row;) {
        try {
          is_row = table->next();
          if (is_row && table->cell("a") == "z") rows_read += table->cell("path") == "G" ? 1 : 0;
          if (is_row) static_cast<void>(table->cell("path"));
        } catch (const BadLine& e) {
          message = e.what();
        }
      }
      CHECK(rows_read == 1);
      CHECK(message == fmt::format("{}:{}: {}", path, is_first ? 1 : 2, why));
    }
}

TEST_CASE("json lines: a name that only later lines have is a column where it is asked for") {
  const TempFolder folder;
  const std::string path = folder.write("t.jsonl",
                                        "{\"path\": \"a\"}\n\n{\"path\": \"b\", \"n\": 2, "
                                        "\"m\": 3}\n{\"path\": \"n\"}\n");
  const auto table = open_table(path, {"path"});
  CHECK(table->find_column("n") == 1);
  CHECK(table->find_column("a") == -1);
  REQUIRE(table->next());
  CHECK(table->cell(1).empty());
  REQUIRE(table->next());
  CHECK(table->cell(1) == "2");
  CHECK(table->find_column("m") == -1);  // rows were read without it
  REQUIRE(table->next());
  CHECK(table->cell(1).empty());
  CHECK_FALSE(table->next());
  CHECK(table->remarks({0, 1}) ==
        std::vector<std::string>{path +
                                 ": 2 of 3 lines have no 'n' (lines 1, 4); it is empty there"});
}

// Code that copies or writes JSON by recursion would run out of stack.
TEST_CASE("tables: JSON that is nested without end is no object, and its line fails alone") {
  constexpr std::size_t kDeep = 1'000'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']'),
                    recording = R"("sources":[{"type":"file","channels":[0],"source":"a.wav"}],)"
                                R"("sampling_rate":8000,"duration":1})",
                    part = R"("recording_id":"r","start":0,"duration":1,"channel":0)";
  struct Row {
    const char* what;
    std::string line, end;
  };
  const Row rows[] = {
      {"a cell", R"({"path":)" + deep + "}\n", R"({"path":"a.wav"})"},
      {"a custom value", "{" + part + R"(,"id":"s","custom":)" + deep + "}\n",
       "{" + part + R"(,"id":"t"})"},
      {"a channel",
       R"({"id":"s","recording_id":"r","start":0,"duration":1,"channel":)" + deep + "}\n",
       "{" + part + R"(,"id":"t"})"},
      {"an id", R"({"id":)" + deep + "," + recording + "\n", R"({"id":"t",)" + recording},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const TempFolder folder;
    folder.write("recordings.jsonl", R"({"id":"r",)" + recording + "\n");
    std::string value;
    CHECK(json_value(row.line, "path", value) == "is no JSON object");
    // In front of it, so that the kind of the list is known.
    const auto table =
        open_table(folder.write("supervisions.jsonl", row.end + '\n' + row.line + row.end), {});
    CHECK(table->next());
    CHECK_THROWS_AS(table->next(), BadLine);
    CHECK(table->next());
    CHECK(table->cell("path") == "a.wav");
  }
  std::string value;
  const std::string shallow =
      R"({"a":"[[[\"{{{","b":)" + std::string(90, '[') + std::string(90, ']');
  CHECK(json_value(shallow + "}", "a", value) == "");
  CHECK(value == "[[[\"{{{");
}

TEST_CASE("json lines: integers of any size keep their digits") {
  CHECK(rows_of("{\"a\": 12345678901234567890123, \"b\": -98765432109876543210, \"c\": "
                "18446744073709551615}\n"
                "{\"a\": 12345678901234567890124, \"b\": 1.50, \"c\": [36893488147419103232]}\n",
                {"a", "b", "c"}) ==
        Rows{{"12345678901234567890123", "-98765432109876543210", "18446744073709551615"},
             {"12345678901234567890124", "1.5", "36893488147419103232"}});
}

TEST_CASE("json lines: NaN, Infinity and bytes that are not UTF-8, as Python writes them") {
  CHECK(rows_of(
            R"({"path": "caf\udce9.wav", "n": NaN, "i": [Infinity, -Infinity], "t": "NaN \" NaN"})"
            "\n",
            {"path", "n", "i", "t"}) ==
        Rows{{"caf\xE9.wav", "", "Infinity\x1F-Infinity", "NaN \" NaN"}});
  // A pair of surrogates is a character, also beside such a byte; half of one is nothing.
  CHECK(rows_of(R"({"path": "\ud83d\udca9\udce9"})"
                "\n",
                {"path"}) == Rows{{"\xF0\x9F\x92\xA9\xE9"}});
  CHECK(complaint("{\"path\": \"a\"}\n{\"path\": \"\\ud83d\"}\n") ==
        "t.jsonl:2: this is not a JSON object; one per line is expected");
  // U+FDD0 stands for such bytes while a line is parsed.
  CHECK(complaint("{\"path\": \"a\"}\n{\"path\": \"\\ufdd0\\udce9\"}\n") ==
        "t.jsonl:2: this is not a JSON object; one per line is expected");
  CHECK(rows_of("{\"path\": \"\\ufdd0\\u00e9\"}\n", {"path"}) == Rows{{"\xEF\xB7\x90\xC3\xA9"}});
}

TEST_CASE("json lines: of a name that comes twice the last value counts") {
  CHECK(rows_of("{\"a\": [1, 2], \"a\": 3, \"b\": {}, \"b\": \"x\"}\n", {"a", "b"}) ==
        Rows{{"3", "x"}});
}

TEST_CASE("json lines: names of lines that are no objects are forgotten") {
  const TempFolder folder;
  const auto table =
      open_table(folder.write("t.jsonl", "{\"path\": \"a\"}\n{\"new\": 1, \"path\n"), {});
  CHECK(table->next());
  CHECK_THROWS_AS(table->next(), BadLine);
  CHECK(table->columns() == std::vector<std::string>{"path"});
}

TEST_CASE("tables: the ending says which") {
  for (const char* name : {"a.csv", "b.CSV", "c.tsv", "d.jsonl", "e.ndjson", "a.json", "a.csv.gz",
                           "b.JSONL.GZ", "x.csv/y.Tsv"})
    CHECK(is_table(name));
  for (const char* name : {"a.txt", "csv", ".csv", "a.csv.bz2", "a.gz", ""})
    CHECK_FALSE(is_table(name));
  const TempFolder folder;
  const auto table = open_table(folder.write("t.tsv", "path\tlabel\na,b\tc\n"), {"label"});
  REQUIRE(table->next());
  CHECK(table->cell("path") == "a,b");
  CHECK(table->cell("label") == "c");
}

}  // namespace melflow::test::json_lines_test
