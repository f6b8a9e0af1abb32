#include "stages/corpus/csv.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "pipeline/base/problem.h"
#include "tests/support/printing.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::csv_test {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& text, int columns) {
  const TempFolder folder;
  CsvReader csv(folder.write("t.csv", text), {});
  std::vector<std::vector<std::string>> out;
  while (csv.next()) {
    std::vector<std::string>& row = out.emplace_back();
    for (int c = 0; c < columns; ++c) row.push_back(csv.cell(c));
  }
  return out;
}

// Returns the message without the folder; "" if nothing is thrown.
std::string complaint(const TempFolder& folder, const std::string& name,
                      const std::vector<std::string>& required) {
  try {
    CsvReader csv(folder / name, required);
    while (csv.next()) {
    }
  } catch (const RunError& e) {
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path() + "/")) != text.npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("csv: cells, quotes and line ends") {
  using Rows = std::vector<std::vector<std::string>>;
  struct Row {
    const char* what;
    std::string text;
    Rows rows;
  };
  const Row table[] = {
      {"plain", "a,b\n1,2\n3,4\n", {{"1", "2"}, {"3", "4"}}},
      {"no line end at the end", "a,b\n1,2", {{"1", "2"}}},
      {"Windows' line ends", "a,b\r\n1,2\r\n", {{"1", "2"}}},
      {"a byte order mark",
       "\xEF\xBB\xBF"
       "a,b\n1,2\n",
       {{"1", "2"}}},
      {"empty cells", "a,b\n,\n1,\n,2\n", {{"", ""}, {"1", ""}, {"", "2"}}},
      {"blank lines", "a,b\n\n1,2\n\n\n3,4\n\n", {{"1", "2"}, {"3", "4"}}},
      {"quotes", "a,b\n\"1\",\"2\"\n", {{"1", "2"}}},
      {"a comma in quotes", "a,b\n\"x,y\",2\n", {{"x,y", "2"}}},
      {"a doubled quote", "a,b\n\"say \"\"hi\"\"\",2\n", {{"say \"hi\"", "2"}}},
      {"an empty cell in quotes", "a,b\n\"\",2\n", {{"", "2"}}},
      {"only a doubled quote", "a,b\n\"\"\"\",2\n", {{"\"", "2"}}},
      {"a line break in quotes", "a,b\n\"x\ny\",2\n3,4\n", {{"x\ny", "2"}, {"3", "4"}}},
      {"a quote inside a plain cell", "a,b\nx\"y,2\n", {{"x\"y", "2"}}},
      {"spaces are part of a cell", "a,b\n 1 ,2\n", {{" 1 ", "2"}}},
      {"bytes above 127", "a,b\nd\xC3\xA9j\xC3\xA0,2\n", {{"d\xC3\xA9j\xC3\xA0", "2"}}},
      {"a header only", "a,b\n", {}},
  };
  for (const Row& row : table) {
    CAPTURE(std::string(row.what));
    CHECK(rows_of(row.text, 2) == row.rows);
  }
}

TEST_CASE("csv: columns are found by name, and the line of a row is known") {
  const TempFolder folder;
  CsvReader csv(folder.write("t.csv", "path,\"the label\"\n\na.wav,\"x\ny\"\nb.wav,z\n"), {"path"});
  CHECK(csv.column("path") == 0);
  CHECK(csv.column("the label") == 1);
  CHECK(csv.column("label") == -1);
  REQUIRE(csv.next());
  CHECK(csv.line() == 3);
  CHECK(csv.cell("path") == "a.wav");
  CHECK(csv.cell("the label") == "x\ny");
  REQUIRE(csv.next());
  CHECK(csv.line() == 5);
  CHECK_FALSE(csv.next());
}

TEST_CASE("csv: what is wrong is said with file, line and what was expected") {
  const TempFolder folder;
  folder.write("empty.csv", "");
  folder.write("no.csv", "name,label\nx,y\n");
  folder.write("long.csv", "path,label\n\"a\nb.wav\",x\nc.wav,x,y\n");
  folder.write("open.csv", "path,label\na.wav,\"x\nb.wav,y\n");
  folder.write("tabs.csv", "path\ttext\na.wav\tx, y\n");
  folder.write("near.csv", "paht,text\na.wav,x\n");
  folder.write("rows.csv", "a/1.wav,x\n");
  folder.folder("folder.csv");
  struct Row {
    const char* name;
    std::string message;
  };
  const Row rows[] = {
      {"gone.csv", "gone.csv: cannot be read: No such file or directory"},
      {"folder.csv", "folder.csv: this is a folder, not a file"},
      {"empty.csv", "empty.csv: this file is empty, a header line is expected"},
      {"no.csv", "no.csv:1: there is no column 'path'; the header has name, label"},
      {"long.csv",
       "long.csv:4: 3 cells, but the header has 2; put a cell with commas in quotes, and keep the "
       "comma of an empty cell"},
      {"open.csv",
       "open.csv:2: a quote opens here and is not closed to the end of the file (line 3); where "
       "quotes are characters of the texts, write quoting: none in the file_list node"},
      {"tabs.csv",
       "tabs.csv:1: there is no column 'path'; the first line is 'path\\ttext', with tabs between "
       "its cells; write delimiter: \"\\t\" and, where the first line is no header, the names of "
       "the columns as header: [...]"},
      {"near.csv",
       "near.csv:1: there is no column 'path'; the header has paht, text. Did you mean 'paht'?"},
      {"rows.csv",
       "rows.csv:1: there is no column 'path'; the header has a/1.wav, x; where that is the first "
       "row, name the columns: header: [NAME, ...]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(complaint(folder, row.name, {"path"}) == row.message);
  }
}

TEST_CASE("csv: rows are those that Python's csv module reads") {
  const TempFolder folder;
  const auto cases = nlohmann::json::parse(read_bytes(source_path("tests/unit/csv_cases.json")));
  REQUIRE(cases.size() == 100);
  for (const auto& one : cases) {
    const auto text = one.at("text").get<std::string>();
    CAPTURE(text);
    CsvReader csv(folder.write("t.csv", text), {});
    auto got = nlohmann::json::array();
    // Compares with Python, whose rows may have another number of cells than the header.
    const auto expected = one.at("rows");
    for (bool is_row = true; is_row;) {
      try {
        if (!(is_row = csv.next())) break;
        got.push_back({csv.cell(0), csv.cell(1), csv.cell(2)});
      } catch (const BadLine&) {
        REQUIRE(got.size() < expected.size());
        REQUIRE(expected[got.size()].size() != 3);
        got.push_back(expected[got.size()]);
      } catch (const RunError&) {
        got.push_back("error");
        is_row = false;
      }
    }
    CHECK(got == expected);
  }
}

TEST_CASE("tsv: every line is one row with exactly the fields between its tabs") {
  const TempFolder folder;
  std::mt19937 draw(5);
  std::uniform_int_distribution<int> any(1, 255), length(0, 6), half(0, 1);
  for (int table = 0; table < 100; ++table) {
    std::vector<std::vector<std::string>> rows;
    std::string text = "path\tsentence\tclient\n";
    for (int r = 0; r < 20; ++r) {
      std::vector<std::string>& row = rows.emplace_back();
      for (int c = 0; c < 3; ++c) {
        std::string& field = row.emplace_back(c == 0 ? "x" : "");
        for (int n = length(draw); n > 0; --n) {
          // Quotes are as likely as everything else.
          const char byte = half(draw) == 0 ? '"' : static_cast<char>(any(draw));
          if (byte != '\t' && byte != '\n' && byte != '\r') field += byte;
        }
        text += field + (c < 2 ? "\t" : "");
      }
      text += half(draw) == 0 ? "\n" : "\r\n";
    }
    const auto tsv = open_table(folder.write("t.tsv", text), {"path"});
    for (int r = 0; r < 20; ++r) {
      REQUIRE(tsv->next());
      CHECK(std::vector<std::string>{tsv->cell(0), tsv->cell(1), tsv->cell(2)} ==
            rows[static_cast<std::size_t>(r)]);
      CHECK(tsv->line() == r + 2);
    }
    CHECK_FALSE(tsv->next());
  }
}

TEST_CASE("tables: quoting is by the ending, or as asked for") {
  const TempFolder folder;
  struct Row {
    const char* name;
    Quoting quoting;
    const char* cell;
  };
  const Row rows[] = {
      {"t.csv", Quoting::automatic, "x"},     {"t.csv", Quoting::none, "\"x\""},
      {"t.tsv", Quoting::automatic, "\"x\""}, {"t.TSV", Quoting::none, "\"x\""},
      {"t.tsv", Quoting::csv, "x"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto table =
        open_table(folder.write(row.name, "path\n\"x\"\n"), {"path"}, {.quoting = row.quoting});
    REQUIRE(table->next());
    CHECK(table->cell(0) == row.cell);
  }
  // The message about quoted cells where quotes have no meaning.
  folder.write("q.tsv", "\"path\"\t\"text\"\n");
  folder.write("r.tsv", "path\ttext\n\"a\tb\"\tc\n");
  const auto message = [&](const char* name) -> std::string {
    try {
      open_table(folder / name, {"path"})->next();
    } catch (const RunError& e) {
      return std::string(e.what()).substr(folder.path().size() + 1);
    }
    return "";
  };
  CHECK(message("q.tsv") ==
        "q.tsv:1: there is no column 'path'; the header has \"path\", \"text\"; where cells are in "
        "quotes, write quoting: csv");
  CHECK(
      message("r.tsv") ==
      "r.tsv:2: 3 cells, but the header has 2; keep the tab of an empty cell, and where cells are "
      "in quotes, write quoting: csv");
}

TEST_CASE("csv: rows of several lines are told with their lines") {
  const TempFolder folder;
  const std::string path = folder.write("t.csv", "a,b\n1,2\n\"x\n\ny\",2\n3,\"z\n\"\n");
  CsvReader csv(path, {});
  CHECK(csv.remarks({}).empty());
  while (csv.next()) {
  }
  CHECK(csv.remarks({}) == std::vector<std::string>{
                               path + ": 2 rows are several lines, as a quote is open at a line's "
                                      "end; the first is lines 3 to 5; where quotes are characters "
                                      "of the texts, write quoting: none in the file_list node"});
}

}  // namespace melflow::test::csv_test
