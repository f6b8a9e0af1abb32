// melflow report: the changes between two runs, and noise.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/profile/comparison.h"
#include "apps/report/saved_report.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"

namespace melflow::test::report_test {
namespace {

const std::string kToy = MELFLOW_TOY_PROGRAM;

// 1,000 calls of 100 us, all alike.
RunSpeed::Stage even(const std::string& name, double busy) {
  return {name, busy, busy, 1000, 1e-4, 1e-4, 1e-4};
}

RunSpeed run_of(std::vector<RunSpeed::Stage> stages, double files_per_second) {
  return {.files = 1000, .files_per_second = files_per_second, .stages = std::move(stages)};
}

}  // namespace

TEST_CASE("report: what got slower by most comes first") {
  const Comparison c =
      compare_runs(run_of({even("read", 1e-5), even("mel", 8e-5), even("old", 1e-5)}, 10'000),
                   run_of({even("read", 4e-5), even("mel", 7e-5), even("new", 1e-5)}, 8'000));
  CHECK(c.is_slower());
  CHECK(c.whole.share() == doctest::Approx(-0.2));
  REQUIRE(c.stages.size() == 2);
  CHECK(c.stages[0].name == "read");
  CHECK(c.stages[0].share() == doctest::Approx(3));
  CHECK(c.stages[0].is_real());
  CHECK(c.stages[1].share() == doctest::Approx(-0.125));
  CHECK(c.stages[1].is_real());
  CHECK(c.only_before == std::vector<std::string>{"old"});
  CHECK(c.only_after == std::vector<std::string>{"new"});
}

TEST_CASE("report: five in a hundred is noise, and what other programs took of the cores") {
  const RunSpeed before = run_of({even("mel", 1e-4)}, 10'000);
  CHECK_FALSE(compare_runs(before, run_of({even("mel", 1.04e-4)}, 9'600)).is_slower());
  CHECK(compare_runs(before, run_of({even("mel", 1.06e-4)}, 9'400)).is_slower());
  CHECK(compare_runs(before, run_of({even("mel", 1.06e-4)}, 9'400)).stages[0].is_real());
  RunSpeed disturbed = run_of({even("mel", 1.3e-4)}, 7'500);
  CHECK(compare_runs(before, disturbed).is_slower());
  disturbed.taken_by_others = 0.4;
  CHECK_FALSE(compare_runs(before, disturbed).is_slower());
  const RunSpeed& after = before;
  CHECK_FALSE(compare_runs(disturbed, after).stages[0].is_real());
}

TEST_CASE("report: calls that differ much say little when there are few of them") {
  // The 90 % quantile is 1.2816 x 100 us above the median: standard deviation and mean are 100 us.
  const auto spread = [](double busy, double calls) {
    return RunSpeed::Stage{"mel", busy, busy, calls, 1e-4, 2.2816e-4, 3.3263e-4};
  };
  // 3 x sqrt(2) / sqrt(100) = 42 %; with 10,000 calls 4.2 %, so the 5 % count.
  struct Row {
    double calls, noise;
  };
  for (const Row& row : {Row{100.0, 0.4243}, Row{10'000.0, 0.05}}) {
    const auto& [calls, noise] = row;
    const Change c =
        compare_runs(run_of({spread(1e-4, calls)}, 1), run_of({spread(1.3e-4, calls)}, 1))
            .stages[0];
    CAPTURE(row.calls);
    CHECK(c.noise == doctest::Approx(noise).epsilon(0.001));
    CHECK(c.is_real() == (calls > 1000));
  }
}

TEST_CASE("report: a run that counted nothing differs from nothing") {
  const Comparison c = compare_runs(RunSpeed{}, RunSpeed{});
  CHECK_FALSE(c.is_slower());
  const Comparison zero =
      compare_runs(run_of({{"mel", 0, 0, 0, 0, 0, 0}}, 0), run_of({even("mel", 1e-4)}, 5));
  CHECK_FALSE(zero.is_slower());
  CHECK_FALSE(zero.stages[0].is_real());
}

TEST_CASE("report: two documents of the program, beside each other") {
  const Toy folder(40);
  const auto run_into = [&](const std::string& name, const std::string& wait) {
    REQUIRE(run(folder, {kToy, "run", "-q", "toy.yaml", "--set", wait, "--json=" + name}).code ==
            0);
  };
  run_into("a.json", "work.wait_ms=0");
  run_into("b.json", "work.wait_ms=20");
  // Significant on any machine; the reports are edited to say that no cores were taken.
  for (const char* name : {"a.json", "b.json"}) {
    auto json = nlohmann::ordered_json::parse(read_text(folder / name));
    json["limit"]["taken_by_others"] = 0;
    if (std::string(name) == "b.json") json["limit"]["files_per_second"] = 10;
    write_text(folder / name, json.dump());
  }
  const Ended slower = run(folder, {kToy, "report", "a.json", "b.json"});
  CAPTURE(slower.out);
  CHECK(slower.code == 1);
  CHECK(has(slower.out, " files/s while the stages worked ("));
  CHECK(has(slower.out, "): slower\n"));
  CHECK(has(slower.out, "\nlimited by: "));
  CHECK(has(slower.out, "\nwork "));
  const Ended same = exits(0, run(folder, {kToy, "report", "a.json", "a.json"}));
  CHECK(has(same.out, "(+0%): no more than noise\n"));
}

TEST_CASE("report: what is no report is named, with what would be one") {
  const Toy folder(0);
  REQUIRE(run(folder, {kToy, "run", "-q", "toy.yaml", "--json=empty.json"}).code == 0);
  write_text(folder / "other.json", "{\"x\": 1}");
  write_text(folder / "torn.json", "{\"melflow_version\": \"0.1.0\", \"limit\": {\"cause\": 3}}");
  struct Row {
    const char *file, *message;
  };
  for (const Row& row :
       {Row{"missing.json", "missing.json: there is no such file; "},
        Row{"other.json",
            "other.json: this is not a report of melflow; `melflow run PIPELINE --json="},
        Row{".", ".: this is a folder; name the document of a run"},
        Row{"toy.yaml", "toy.yaml: this is not a report of melflow"},
        Row{"torn.json", "torn.json: this is not a complete report of melflow: "},
        Row{"empty.json", "empty.json: has no figures of speed: its run processed no file"}}) {
    const Ended e = run(folder, {kToy, "report", row.file, row.file});
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(has(e.err, row.message));
  }
}

}  // namespace melflow::test::report_test
