#include "stages/corpus/csv.h"

#include <doctest/doctest.h>

#include "pipeline/problem.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace csv_test {

using namespace melflow;
using namespace melflow::test;

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

// The message without the folder; "" when nothing is thrown.
std::string complaint(const TempFolder& folder, const std::string& name,
                      const std::vector<std::string>& required) {
  try {
    CsvReader csv(folder / name, required);
    while (csv.next()) {
    }
  } catch (const RunError& e) {
    std::string text = e.what();
    if (text.starts_with(folder.path() + "/")) text.erase(0, folder.path().size() + 1);
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
  folder.write("short.csv", "path,label\na.wav,x\nb.wav\n");
  folder.write("long.csv", "path,label\n\"a\nb.wav\",x\nc.wav,x,y\n");
  folder.write("open.csv", "path,label\na.wav,\"x\nb.wav,y\n");
  folder.folder("folder.csv");
  struct Row {
    const char* name;
    std::string message;
  };
  const Row rows[] = {
      {"gone.csv", "gone.csv: cannot be read: No such file or directory"},
      {"folder.csv", "folder.csv: cannot be read: Is a directory"},
      {"empty.csv", "empty.csv: this file is empty, a header line is expected"},
      {"no.csv", "no.csv:1: there is no column 'path'; the header has name, label"},
      {"short.csv",
       "short.csv:3: 1 cell, but the header has 2; put a cell with commas in quotes, and keep the "
       "comma of an empty cell"},
      {"long.csv",
       "long.csv:4: 3 cells, but the header has 2; put a cell with commas in quotes, and keep the "
       "comma of an empty cell"},
      {"open.csv", "open.csv:2: a quote is not closed"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(complaint(folder, row.name, {"path"}) == row.message);
  }
}

}  // namespace csv_test
