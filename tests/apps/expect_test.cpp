// What a configuration expects of its run: judged by hand-made reports, and by the program.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/profile/verdicts.h"
#include "apps/report/verdicts_text.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"

namespace expect_test {

using namespace melflow;
using test::Ended;
using test::has;
using test::TempFolder;
using test::write_toy;

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

TEST_CASE("expect: a run as expected ends with 0 and says so") {
  const TempFolder folder;
  write_toy(folder, 40);
  const Ended e =
      run(folder, command({"--set", "expect.files_per_second=> 0", "--set", "expect.failed=< 1"}));
  CHECK(e.code == 0);
  CHECK(has(e.out, "\nexpected files_per_second > 0: "));
  CHECK(has(e.out, "\nexpected failed < 1: 0 files, met\n"));
}

TEST_CASE("expect: a run that is not as expected ends with 4, files that failed or not") {
  const TempFolder folder;
  write_toy(folder, 40);
  const Ended slow = run(folder, command({"--set", "expect.files_per_second=> 1e12", "--json"}));
  CHECK(slow.code == 4);
  const auto json = nlohmann::json::parse(slow.out);
  CHECK(json["exit_code"] == 4);
  CHECK(json["ending"] == "complete");
  REQUIRE(json["expected"].size() == 1);
  CHECK(json["expected"][0]["met"] == false);
  CHECK(json["expected"][0]["value"] == json["files_per_second"]);

  const Ended failures =
      run(folder, command({"-q", "--set", "expect.failed=< 10%", "--set", "work.fail_every=4"}));
  CHECK(failures.code == 4);
  CHECK(failures.out.empty());
  CHECK(has(failures.err, "\nexpected failed < 10%: 25%, NOT met\n"));
  const Ended allowed =
      run(folder, command({"-q", "--set", "expect.failed=<= 25%", "--set", "work.fail_every=4"}));
  CHECK(allowed.code == 3);
  CHECK_FALSE(has(allowed.err, "expected"));
}

TEST_CASE("expect: a run that fails ends as failed, whatever was expected") {
  const TempFolder folder;
  write_toy(folder, 40);
  const Ended e =
      run(folder,
          command({"--set", "expect.files_per_second=> 1e12", "--set", "work.break_down=true"}));
  CHECK(e.code == 1);
}

}  // namespace expect_test
