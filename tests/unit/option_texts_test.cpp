// A text of an option is read alone, in a table or an editor: it names what it speaks of.

#include <doctest/doctest.h>

#include <regex>
#include <string>

#include "config/reference.h"

using namespace melflow;

TEST_CASE("option texts: each stands alone") {
  const std::regex leans(
      "^(of|for|and|that|it|those|likewise|such|\\.\\.\\.)\\b.*|^\\.\\.\\..*|"
      ".*( of it\\b| of that\\b| that node\\b|likewise|\\.\\.\\.).*");
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
      CHECK_FALSE(std::regex_match(row.doc, leans));
    }
  }
  CHECK(options > 100);
}
