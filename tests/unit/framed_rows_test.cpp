// The pieces of an archive of rows, which are recordings or their results.
#include "stages/output/formats/framed_rows.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stages/output/formats/stored_json.h"

namespace melflow::framed_rows_test {

TEST_CASE("framed rows: results make up the rows of their recording, and are numbered") {
  const std::vector<std::string> names{"a"};
  const auto named = [&](const char* results) {
    return named_rows(
        1,
        [&](std::size_t) {
          return RowsOfFile{4, 2, results};
        },
        names);
  };
  const auto two = named(
      R"([{"rows": 1, "number": {"repeat": 0}}, {"rows": 1, "number": {"repeat": 1, "cut": 12}}])");
  REQUIRE(two.size() == 2);
  CHECK(two[0].name == "a-0");
  CHECK(two[1].name == "a-1-12");
  CHECK(two[1].first == 5);
  CHECK(named(R"([{"rows": 2}])").size() == 1);
  for (const char* results : {
           R"([{"rows": 1}])",
           R"([{"rows": 1}, {"rows": 2}])",
           R"([{"rows": 4}, {"rows": -2}])",
           R"([{"rows": 2, "number": {"repeat": "../../x"}}])",
           R"([{"rows": 2, "number": ["../../x"]}])",
           R"([{"rows": 2, "number": [1]}])",
           R"([{"rows": 2, "number": null}])",
           R"([{"rows": 2, "number": {"repeat": 1.5}}])",
           "[",
       }) {
    CAPTURE(std::string(results));
    CHECK_THROWS_AS(named(results), RunError);
  }
}

}  // namespace melflow::framed_rows_test
