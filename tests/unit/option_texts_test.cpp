// An option's text is read alone, in a table or an editor, so it must name everything it refers to.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/reference.h"
#include "pipeline/plan/plan.h"

namespace melflow::option_texts_test {
namespace {

// Whether a text refers to something outside; compares words between single spaces.
bool leans_on_others(const std::string& text) {
  std::string words = " ";
  for (const char c : text) words += c == ',' || c == ';' || c == ':' ? ' ' : c;
  words += ' ';
  const auto has = [&](std::string_view what) { return words.find(what) != std::string::npos; };
  constexpr std::array kFirst{" of ", " for ", " and ", " that ", " it ", " those ", " such "};
  constexpr std::array kAnywhere{" of it ", " of that ", " that node ", "likewise", "..."};
  return std::any_of(kFirst.begin(), kFirst.end(),
                     [&](std::string_view w) { return words.starts_with(w); }) ||
         std::any_of(kAnywhere.begin(), kAnywhere.end(), has);
}

constexpr std::ptrdiff_t kMostWords = 40;  // longer forms are in an example, or a page of docs/
std::ptrdiff_t words_of(const std::string& text) {
  std::istringstream words(text);
  return std::distance(std::istream_iterator<std::string>(words), {});
}

int check(const std::string& where, const Schema& schema) {
  const std::vector<OptionRow> rows = option_rows(schema);
  for (const OptionRow& row : rows) {
    CAPTURE(where);
    CAPTURE(row.name);
    CAPTURE(row.doc);
    CHECK(row.doc.size() >= 15);
    CHECK_FALSE(leans_on_others(row.doc));
    CHECK(words_of(row.doc) <= kMostWords);
  }
  return static_cast<int>(rows.size());
}

}  // namespace

TEST_CASE("option texts: what leans on another text is seen") {
  for (const char* text : {"of that noise", "upper end of it", "likewise for the last", "and so on",
                           "the same ..., for rows", "of that, seed"})
    CHECK(leans_on_others(text));
  CHECK_FALSE(leans_on_others("upper end of the lowest band [Hz]"));
}

TEST_CASE("option texts: each stands alone, and is short") {
  int options = 0;
  for (const StageInfo* stage : Registry::global().all())
    if (!stage->name.starts_with("test_"))
      options += check(stage->name, stage->configure()->schema());
  NodeOptions node;
  Schema of_nodes;
  node.describe(of_nodes);
  options += check("every node", of_nodes);
  CHECK(options > 100);
}

}  // namespace melflow::option_texts_test
