#include "stages/output/formats/root_attributes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace root_attributes_test {

using namespace melflow;
using namespace melflow::test;

namespace {

// What the documentation calls a type, in HDF5.
const char* documented(RootAttribute::Type type) {
  constexpr const char* kNames[] = {"int8", "int32", "int64", "string", "string, JSON"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string table() {
  std::string out = "| attribute | type | what |\n|---|---|---|\n";
  for (const RootAttribute& a : root_attributes())
    out += fmt::format("| `{}` | {} | {}{}{} |\n", a.name, documented(a.type), a.what,
                       *a.only != '\0' ? "; only with " : "", a.only);
  return out;
}

// An output that has these attributes, numbers as text.
struct Attributes {
  std::map<std::string, std::string> of;
  [[nodiscard]] bool has(const std::string& name) const { return of.contains(name); }
  [[nodiscard]] std::string text(const std::string& name) const { return of.at(name); }
  [[nodiscard]] std::int64_t integer(const std::string& name) const {
    return std::stoll(of.at(name));
  }
};

Attributes all_of(std::int64_t format) {
  Attributes out;
  for (const RootAttribute& a : root_attributes())
    if (const std::string name = a.name_in(format); !name.empty())
      out.of[name] = a.is_text() ? "text of " + name : std::to_string(out.of.size());
  out.of["format"] = std::to_string(format);
  return out;
}

FeatureData read(const Attributes& from) {
  FeatureData out;
  out.integers["format"] = from.integer("format");
  read_root_attributes(from, out);
  return out;
}

}  // namespace

TEST_CASE("root attributes: docs/output-format.md has the table of them") {
  const std::string text = read_bytes(source_path("docs/output-format.md"));
  INFO("the table should be\n" << table());
  CHECK(text.find("\n" + table() + "\n") != text.npos);
}

TEST_CASE("root attributes: names are once each, and what tells an output comes first") {
  std::set<std::string> names;
  for (const RootAttribute& a : root_attributes()) {
    CAPTURE(std::string(a.name));
    CHECK(names.insert(a.name).second);
    CHECK((*a.only != '\0') == (a.is_wanted != nullptr));
  }
  // An unfinished document is known by it (npy_file.cpp), whatever is behind it.
  CHECK(std::string(root_attributes().front().name) == "melflow_version");
}

TEST_CASE("root attributes: those of format 1 are read under the names of today") {
  const FeatureData two = read(all_of(2));
  CHECK(two.rows_name() == "text of rows");
  CHECK(two.text("feature_settings") == "text of feature_settings");
  CHECK(two.text("feature_fingerprint") == "text of feature_fingerprint");
  const FeatureData one = read(all_of(1));
  CHECK(one.rows_name() == "mel");
  CHECK(one.text("rows").empty());
  CHECK(one.text("feature_settings") == "text of features");
  CHECK(one.text("feature_fingerprint") == "text of feature_hash");
  CHECK(one.text("features").empty());
}

TEST_CASE(
    "root attributes: one that is missing is damage, but for what not all have and in format 1") {
  for (const RootAttribute& a : root_attributes()) {
    if (std::string(a.name) == "format") continue;
    CAPTURE(std::string(a.name));
    Attributes two = all_of(2), one = all_of(1);
    two.of.erase(a.name);
    one.of.erase(a.name_in(1));
    if (a.is_wanted != nullptr || !a.is_in_all)
      CHECK(read(two).text(a.name).empty());
    else
      CHECK_THROWS_WITH_AS(read(two), fmt::format("there is no attribute '{}'", a.name).c_str(),
                           RunError);
    CHECK_FALSE(read(one).integer(a.name).has_value());
    CHECK((read(one).text(a.name).empty()));
  }
}

}  // namespace root_attributes_test
