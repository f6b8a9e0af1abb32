#include "stages/measures.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::measures_test {

TEST_CASE("measures: docs/quality.md has the table of them") {
  std::string table = "| measure | unit | what | source |\n|---|---|---|---|\n";
  for (const MeasureInfo& m : measures())
    table += fmt::format("| `{}`{} | {} | {} | {} |\n", m.name, m.is_default ? "" : " ¹",
                         to_text(m.unit), m.what, m.source);
  INFO("the table should be\n" << table);
  CHECK(read_bytes(source_path("docs/quality.md")).find("\n" + table + "\n") != std::string::npos);
}

TEST_CASE("measures: each is found by its name, once, and its column says where it comes from") {
  std::set<std::string> names;
  for (const MeasureInfo& m : measures()) {
    CHECK(names.insert(m.name).second);
    CHECK(measure_named(m.name) == &m);
    CHECK(m.column == fmt::format("quality.{}", m.name));
  }
  CHECK(measure_named("loud") == nullptr);
  CHECK(std::string(info_of(Measure::true_peak).name) == "true_peak");
  CHECK(std::string(info_of(Measure::clipped_at).name) == "clipped_at");
  CHECK(default_measures()[static_cast<std::size_t>(Measure::snr)]);
  CHECK_FALSE(default_measures()[static_cast<std::size_t>(Measure::loudness)]);
}

}  // namespace melflow::test::measures_test
