// What every reader of an output relies on.
#include "stages/output/formats/feature_data.h"

#include <doctest/doctest.h>

#include <string>

#include "pipeline/base/problem.h"

namespace melflow::feature_data_test {
namespace {

// Two recordings of two rows each.
FeatureData example() {
  FeatureData out;
  out.shape = {4, 3};
  out.splits = {"train", "test"};
  out.columns = {"speaker"};
  out.texts["rows"] = "mel";
  for (const std::int64_t offset : {0, 2}) {
    FeatureData::Entry& e = out.files.emplace_back();
    e.path = "a.wav";
    e.offset = offset;
    e.count = 2;
    e.texts = {"ann"};
  }
  return out;
}

}  // namespace

TEST_CASE("feature data: names that become paths are checked as they are before they are written") {
  check_contents(example());
  for (const char* name : {"/tmp/x", "..", "../x", ".hidden", "a/b", "", "two\nlines", "\x1b[2J",
                           "\xFF", "\xE2\x80\xA8"}) {
    CAPTURE(std::string(name));
    FeatureData split = example(), column = example(), groups = example();
    split.splits[1] = name;
    CHECK_THROWS_WITH_AS(check_contents(split), doctest::Contains("cannot be the name of a split"),
                         RunError);
    column.columns[0] = name;
    CHECK_THROWS_WITH_AS(check_contents(column),
                         doctest::Contains("cannot be the name of a column"), RunError);
    ColumnStatistics& s = groups.statistics.emplace();
    s.mean = s.std = {1, 2, 3};
    s.groups.emplace().by = name;
    CHECK_THROWS_WITH_AS(check_contents(groups),
                         doctest::Contains("cannot be the name of a column"), RunError);
  }
  FeatureData odd = example();
  odd.splits = {"a..b $HOME", "<b>\"'\\"};
  check_contents(odd);
}

}  // namespace melflow::feature_data_test
