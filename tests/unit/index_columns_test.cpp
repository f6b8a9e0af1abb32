#include "stages/output/formats/index_columns.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::index_columns_test {
namespace {

// Returns the documentation's name of a type; for texts, that in HDF5.
const char* documented(ColumnType type) {
  constexpr const char* kNames[] = {"int8",    "uint8",   "int32", "int64", "uint64",
                                    "float32", "float64", "int8",  "string"};
  return kNames[static_cast<std::size_t>(type)];
}

// The measures have one row: docs/quality.md has the table of them.
std::string table() {
  std::string out = "| dataset | type | what |\n|---|---|---|\n";
  bool has_measures = false;
  for (const IndexColumn& c : index_columns()) {
    const bool is_measure = std::string_view(c.name).starts_with("quality.");
    if (is_measure && !has_measures)
      out +=
          "| `/files/quality.NAME` | float32 | each [measure](quality.md#measures) that was asked "
          "for; NaN: the recording has no such value; only with `quality` |\n";
    has_measures |= is_measure;
    if (is_measure) continue;
    out += fmt::format("| `/files/{}` | {} | {}{}{} |\n", c.name, documented(c.type), c.what,
                       *c.only != '\0' ? "; only with " : "", c.only);
  }
  return out;
}

}  // namespace

TEST_CASE("index columns: docs/output-format.md has the table of them") {
  const std::string text = read_bytes(source_path("docs/output-format.md"));
  INFO("the table should be\n" << table());
  CHECK(text.find("\n" + table() + "\n") != text.npos);
}

TEST_CASE("index columns: names are once each, and what has no fixed length comes last") {
  std::set<std::string> names;
  for (const IndexColumn& c : index_columns()) {
    CAPTURE(std::string(c.name));
    CHECK(names.insert(c.name).second);
    CHECK(size_of(c.type) > 0);
    CHECK((*c.only != '\0') == (c.is_wanted != nullptr || c.per != IndexColumn::Per::file));
  }
  // The text column comes last, since a record is padded there.
  CHECK(index_columns().back().type == ColumnType::text);
}

TEST_CASE("index columns: what is set is what was stored") {
  const auto set = [](const std::string& name, const std::string& bytes) {
    FeatureData::Entry out;
    for (const IndexColumn& c : index_columns())
      if (c.name == name) c.set(bytes, out);
    return out;
  };
  const std::string two("\x02\0\0\0\0\0\0\x01", 8);
  CHECK(set("offset", two).offset == 0x0100'0000'0000'0002);
  CHECK(set("modified", two).stamp.modified == 0x0100'0000'0000'0002);
  CHECK(set("status", "\x03").status == FeatureData::Status::not_run);
  CHECK(set("split", "\xFF").split == -1);
  CHECK(set("duration", std::string("\0\0\0\0\0\0\xF8\x3F", 8)).duration == 1.5);
  CHECK(set("targets", std::string("\0\0\x80\x3F\0\0\0\xC0", 8)).targets ==
        std::vector<float>{1, -2});
  CHECK(set("labels", std::string("\0\x01\0\x01", 4)).labels == std::vector<std::int32_t>{1, 3});
  CHECK(set("path", std::string("a/b.wav\0\0", 9)).path == "a/b.wav");
}

}  // namespace melflow::test::index_columns_test
