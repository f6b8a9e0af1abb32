#include "stages/output/formats/root_attributes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::root_attributes_test {
namespace {

// Returns the documentation's name of a type in HDF5.
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

// An output with these attributes; numbers as text.
struct Attributes {
  std::map<std::string, std::string> of;
  [[nodiscard]] bool has(const std::string& name) const { return of.contains(name); }
  [[nodiscard]] std::string text(const std::string& name) const { return of.at(name); }
  [[nodiscard]] std::int64_t integer(const std::string& name) const {
    return std::stoll(of.at(name));
  }
};

Attributes all_of_them() {
  Attributes out;
  for (const RootAttribute& a : root_attributes())
    out.of[a.name] =
        a.is_text() ? fmt::format("text of {}", a.name) : std::to_string(out.of.size());
  return out;
}

FeatureData read(const Attributes& from) {
  FeatureData out;
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
  // An unfinished document is recognised by it (npy_file.cpp), whatever follows.
  CHECK(std::string(root_attributes().front().name) == "melflow_version");
}

TEST_CASE("root attributes: one that is missing is damage, but for what not all have") {
  for (const RootAttribute& a : root_attributes()) {
    CAPTURE(std::string(a.name));
    Attributes all = all_of_them();
    all.of.erase(a.name);
    if (a.is_wanted != nullptr || !a.is_in_all)
      CHECK(read(all).text(a.name).empty());
    else
      CHECK_THROWS_WITH_AS(read(all), fmt::format("there is no attribute '{}'", a.name).c_str(),
                           RunError);
  }
}

}  // namespace melflow::test::root_attributes_test
