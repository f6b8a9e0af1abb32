// The expectations that a configuration may have on its run.
#include "config/expectations.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/unit/config_stages.h"

namespace melflow::test::expectations_test {
namespace {

template <class B>
B bound(const std::string& text) {
  B out;
  const std::string why = OptionType<B>::parse(Value::scalar(text, {}, true), out);
  REQUIRE_MESSAGE(why.empty(), why);
  return out;
}

template <class B>
std::string problem(const std::string& text) {
  B out;
  return OptionType<B>::parse(Value::scalar(text, {}, true), out);
}

}  // namespace

TEST_CASE("expectations: each comparison, below, at and above its limit") {
  struct Row {
    const char* text;
    bool below, at, above;
  };
  for (const Row& row : {Row{"< 10", true, false, false}, Row{"<= 10", true, true, false},
                         Row{"> 10", false, false, true}, Row{">= 10", false, true, true},
                         Row{"<10", true, false, false}, Row{">=  1e1", false, true, true}}) {
    CAPTURE(row.text);
    const auto b = bound<NumberBound>(row.text);
    CHECK(b.is_met_by(9.5) == row.below);
    CHECK(b.is_met_by(10) == row.at);
    CHECK(b.is_met_by(10.5) == row.above);
    CHECK(OptionType<NumberBound>::echo(b).text() == row.text);
  }
}

TEST_CASE("expectations: sizes, counts and shares") {
  CHECK(bound<SizeBound>("< 600MiB").limit == 600.0 * 1024 * 1024);
  CHECK(bound<CountBound>("< 0.1%").limit == doctest::Approx(0.001));
  CHECK(bound<CountBound>("< 0.1%").is_share);
  CHECK(bound<CountBound>("< 0.1 %").limit == doctest::Approx(0.001));
  CHECK(bound<CountBound>("<= 10").limit == 10);
  CHECK_FALSE(bound<CountBound>("<= 10").is_share);
}

TEST_CASE("expectations: what is no bound is refused, with what would be one") {
  for (const char* text : {"20000", "", "<", ">= many", "= 3", "> -1", "< 600MiB"}) {
    CAPTURE(text);
    const std::string why = problem<NumberBound>(text);
    CHECK(why.find("is not a bound such as \">= 20000\" or \"< 3.5\", in quotes") != why.npos);
  }
  CHECK(problem<SizeBound>("< 600 elephants").find("\"< 600MiB\"") != std::string::npos);
  CHECK(problem<CountBound>("< 130%").find("\"< 0.1%\"") != std::string::npos);
}

TEST_CASE("expectations: in a configuration, and by --set") {
  const Plan plain = load(with_scale(kScale));
  REQUIRE(plain.services.find<Expectations>());
  CHECK_FALSE(plain.services.find<Expectations>()->failed.has_value());
  const Plan plan = load(with_scale(
      kScale, "version: 1\nexpect: {files_per_second: \">= 20000\", peak_memory: < 600MiB}"));
  const auto expected = plan.services.find<Expectations>();
  REQUIRE(expected);
  CHECK(expected->files_per_second->limit == 20000);
  CHECK(expected->peak_memory->text == "< 600MiB");
  CHECK(to_json(plan.settings.config).find("expect") == std::string::npos);
  const std::string why = problems_of(with_scale(kScale, "version: 1\nexpect: {failed: 3}"));
  CHECK(why.find("t.yaml:2:18: expect.failed: '3' is not a bound such as \"< 0.1%\"") == 0);
}

}  // namespace melflow::test::expectations_test
