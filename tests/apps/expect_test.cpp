// A configuration's expectations on its run, checked on hand-made reports and by the program.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/profile/verdicts.h"
#include "apps/report/verdicts_text.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"

namespace melflow::test::expect_test {
namespace {

const std::string kToy = MELFLOW_TOY_PROGRAM;

template <class B>
std::optional<B> bound(const std::string& text) {
  B out;
  REQUIRE(OptionType<B>::parse(Value::scalar(text, {}, true), out).empty());
  return out;
}

std::vector<std::string> command(const std::vector<std::string>& more) {
  std::vector<std::string> out{kToy, "run", "toy.yaml", "--no-progress"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace

TEST_CASE("expect: each figure is judged by the report's own") {
  RunReport r;
  r.wall_seconds = 4;
  r.counts = {.found = 1000, .ok = 960, .skipped = 30, .failed = 10};
  r.resident_peak = std::size_t{500} << 20;
  Expectations e;
  e.files_per_second = bound<NumberBound>(">= 250");  // 1,000 files in 4 s
  e.rows_per_second = bound<NumberBound>("> 20000");  // 80,000 rows in 4 s
  e.seconds = bound<NumberBound>("< 4");
  e.peak_memory = bound<SizeBound>("< 600MiB");
  e.failed = bound<CountBound>("<= 1%");
  e.skipped = bound<CountBound>("< 30");
  const std::vector<Verdict> v = verdicts(e, r, 80'000);
  CHECK(verdicts_text(v) ==
        "expected files_per_second >= 250: 250, met\n"
        "expected rows_per_second > 20000: 20,000, NOT met\n"
        "expected seconds < 4: 4, NOT met\n"
        "expected peak_memory < 600MiB: 500 MiB, met\n"
        "expected failed <= 1%: 1%, met\n"
        "expected skipped < 30: 30 files, NOT met\n");
  CHECK(verdicts_json(v)[5] ==
        nlohmann::ordered_json{
            {"what", "skipped"}, {"expected", "< 30"}, {"value", 30.0}, {"met", false}});
  CHECK(verdicts(Expectations{}, r, 0).empty());
  CHECK(verdicts(e, RunReport{}, 0).size() == 6);
}

TEST_CASE("expect: a figure of the report goes by its place, with names that have dots") {
  const auto report = nlohmann::ordered_json::parse(R"({
    "seconds": 2, "ending": "complete",
    "stages": [{"name": "mel", "busy_share": 0.5},
               {"name": "mel.h2d", "summary": {"link": {"percent": 40}}}],
    "edges": [{"from": "mel", "to": "mel.h2d", "mean_depth": 4.5}]})");
  FigureBounds bounds;
  const Value map = Value::map({});
  Value written = map;
  for (const auto& [place, text] :
       {std::pair("edges.mel.h2d.mean_depth", "> 4"), std::pair("stages.mel.busy_share", "< 0.5"),
        std::pair("stages.mel.h2d.summary.link.percent", ">= 40"), std::pair("seconds", "< 3"),
        std::pair("ending", "< 3"), std::pair("edges.mel.mean_depth", "< 3")})
    written.set(place, Value::scalar(text, {}, true));
  REQUIRE(OptionType<FigureBounds>::parse(written, bounds).empty());
  const auto judged = verdicts_on_figures(bounds, report);
  CHECK(verdicts_text(judged) ==
        "expected edges.mel.h2d.mean_depth > 4: 4.5, met\n"
        "expected stages.mel.busy_share < 0.5: 0.5, NOT met\n"
        "expected stages.mel.h2d.summary.link.percent >= 40: 40, met\n"
        "expected seconds < 3: 2, met\n"
        "expected ending < 3: the report has no such number, NOT met\n"
        "expected edges.mel.mean_depth < 3: the report has no such number, NOT met\n");
  CHECK(verdicts_json(judged)[5]["value"].is_null());
  written.set("rows", Value::scalar("many", {}, true));
  CHECK(has(OptionType<FigureBounds>::parse(written, bounds), "rows: 'many' is not a bound"));
  CHECK(has(OptionType<FigureBounds>::parse(Value::scalar("1"), bounds), "is not a map such as"));
}

TEST_CASE("expect: a figure that is not as expected ends the run with 4") {
  const Toy folder(40);
  const Ended met =
      exits(0, run(folder, command({"--set", "expect.figures={edges.work.mean_depth: '>= 0'}"})));
  CHECK(has(met.out, "\nexpected edges.work.mean_depth >= 0: "));
  CHECK(has(exits(4, run(folder, command({"--set", "expect.figures={files.lost: '< 1'}"}))).out,
            "expected files.lost < 1: the report has no such number, NOT met\n"));
}

TEST_CASE("expect: a run as expected ends with 0 and says so") {
  const Toy folder(40);
  const Ended e = exits(
      0,
      run(folder, command({"--set", "expect.files_per_second=> 0", "--set", "expect.failed=< 1"})));
  CHECK(has(e.out, "\nexpected files_per_second > 0: "));
  CHECK(has(e.out, "\nexpected failed < 1: 0 files, met\n"));
}

TEST_CASE("expect: a run that is not as expected ends with 4, files that failed or not") {
  const Toy folder(40);
  const Ended slow =
      exits(4, run(folder, command({"--set", "expect.files_per_second=> 1e12", "--json"})));
  const auto json = nlohmann::json::parse(slow.out);
  CHECK(json["exit_code"] == 4);
  CHECK(json["ending"] == "complete");
  REQUIRE(json["expected"].size() == 1);
  CHECK(json["expected"][0]["met"] == false);
  CHECK(json["expected"][0]["value"] == json["files_per_second"]);

  const Ended failures = exits(
      4,
      run(folder, command({"-q", "--set", "expect.failed=< 10%", "--set", "work.fail_every=4"})));
  CHECK(failures.out.empty());
  CHECK(has(failures.err, "\nexpected failed < 10%: 25%, NOT met\n"));
  const Ended allowed = exits(
      3,
      run(folder, command({"-q", "--set", "expect.failed=<= 25%", "--set", "work.fail_every=4"})));
  CHECK_FALSE(has(allowed.err, "expected"));
}

TEST_CASE("expect: a run that fails ends as failed, whatever was expected") {
  const Toy folder(40);
  exits(1, run(folder, command({"--set", "expect.files_per_second=> 1e12", "--set",
                                "work.break_down=true"})));
}

}  // namespace melflow::test::expect_test
