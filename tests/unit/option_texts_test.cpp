// An option's text is read alone, in a table or an editor, so it must name everything it refers to.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "config/reference.h"

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

}  // namespace

TEST_CASE("option texts: what leans on another text is seen") {
  for (const char* text : {"of that noise", "upper end of it", "likewise for the last", "and so on",
                           "the same ..., for rows", "of that, seed"})
    CHECK(leans_on_others(text));
  CHECK_FALSE(leans_on_others("upper end of the lowest band [Hz]"));
}

TEST_CASE("option texts: each stands alone") {
  int options = 0;
  for (const StageInfo* stage : Registry::global().all()) {
    if (stage->name.starts_with("test_")) continue;
    const auto config = stage->configure();
    for (const OptionRow& row : option_rows(config->schema())) {
      ++options;
      CAPTURE(stage->name);
      CAPTURE(row.name);
      CAPTURE(row.doc);
      CHECK(row.doc.size() >= 15);
      CHECK_FALSE(leans_on_others(row.doc));
    }
  }
  CHECK(options > 100);
}

}  // namespace melflow::option_texts_test
