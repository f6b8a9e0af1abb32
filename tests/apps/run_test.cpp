// melflow run: exit statuses, output on stdout and stderr, and stopping.
#include <doctest/doctest.h>

#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/skip.h"

namespace melflow::test::run_test {
namespace {

const std::string kToy = MELFLOW_TOY_PROGRAM;

std::vector<std::string> command(const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{kToy, "run", "toy.yaml"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// A run that would take minutes.
std::vector<std::string> slow_run() {
  return command({"--set", "work.wait_ms=20", "--set", "work.begun=begun", "--json"});
}
void let_it_begin(const Process& process, const TempFolder& folder) {
  process.wait_until([&] { return std::filesystem::exists(folder / "begun"); });
}

}  // namespace

TEST_CASE("run: a plain run ends with 0 and a summary on stdout") {
  const Toy folder(40);
  const Ended e = exits(0, run(folder, command()));
  CHECK(e.err.empty());
  CHECK(e.out.starts_with("40 files: 40 ok, 0 skipped, 0 failed\n120 rows in "));
  CHECK(has(e.out, "\ntoy.out: 1.50 MB\n"));
  CHECK(has(e.out, "\nwork "));
  CHECK(has(e.out, "\nmemory: "));
  CHECK_FALSE(has(e.out, "failed, ok with a warning, or skipped"));
}

// A recording that turns out to be too long has rows by then; they are not in the output.
TEST_CASE("run: the rows that are told are those in the output that this run computed") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "data");
  for (const char* name : {"a", "b", "c"})
    test::write_clip(folder / (fmt::format("data/{}.wav", name)), 16000, 1);
  test::write_clip(folder / "data/long.wav", 16000, 120);
  test::write_text(folder / "p.yaml", test::nodes_to_mel("root: data", "preset: kaldi") +
                                          "  write: {stage: hdf5_write, from: mel, path: out.h5}\n"
                                          "expect: {rows_per_second: \"< 1000000\"}\n");
  const auto report_of = [&](std::vector<std::string> arguments) {
    for (const char* more : {"p.yaml", "--set", "segment.max_length=100s", "--set",
                             "decode.block=64KiB", "--json=r.json"})
      arguments.emplace_back(more);
    arguments.insert(arguments.begin(), MELFLOW_PROGRAM);
    return run(folder, arguments);
  };
  const auto rows = [&] { return nlohmann::json::parse(read_text(folder / "r.json"))["rows"]; };
  const Ended first = exits(0, report_of({"run"}));
  constexpr int kFrames = 98;  // of 400 samples, one every 160, in a second
  CHECK(first.out.starts_with("4 files: 3 ok, 1 skipped, 0 failed\n294 rows in "));
  CHECK(rows() == 3 * kFrames);
  test::write_clip(folder / "data/d.wav", 16000, 2);
  const Ended second = exits(0, report_of({"update"}));
  CHECK(has(second.out, "\n198 rows in "));
  CHECK(has(second.out, "198 rows new"));
  CHECK(rows() == 198);
  CHECK(report_of({"update"}).code == 0);
  CHECK(rows() == 0);
}

TEST_CASE("run: failures end with 3, and more than ten warnings are listed by reason") {
  const Toy folder(40);
  const Ended e =
      exits(3, run(folder, command({"--set", "work.fail_every=4", "--set", "work.skip_every=10"})));
  CHECK(e.out.starts_with("40 files: 28 ok, 2 skipped, 10 failed\n"));
  CHECK(has(e.out,
            "\nfailed, ok with a warning, or skipped:\n"
            "  10 files: work: failed: is broken (toy/0003, toy/0007, toy/0011, …)\n"
            "  2 files: work: skipped: is too short (toy/0009, toy/0029)\n"
            "  (all with --json FILE)\n"));
}

TEST_CASE("run: where no file is ok and some failed, the run failed and writes nothing") {
  const Toy folder(20);
  const Ended all = exits(
      1, run(folder, {kToy, "run", "--json=all.json", "toy.yaml", "--set", "work.fail_every=1"}));
  CHECK(all.out.starts_with("20 files: 0 ok, 0 skipped, 20 failed\n"));
  CHECK(all.err ==
        "melflow: all files failed (20) by work: is broken; correct the pipeline or the "
        "files, and run it again; nothing is written, and an existing output stays as it was\n");
  const auto json = nlohmann::json::parse(read_text(folder / "all.json"));
  CHECK(json["ending"] == "failed");
  CHECK(json["exit_code"] == 1);
  CHECK(json["remarks"].size() == 20);
  const Ended most =
      exits(1, run(folder, command({"--set", "work.fail_every=2", "--set", "work.skip_every=1"})));
  CHECK(has(most.err,
            "melflow: no file is ok: 10 failed (by work: is broken), 10 skipped (by work: is too "
            "short); change the files, or the options of work; nothing is written"));
}

TEST_CASE("run: skipped files alone are no failure") {
  const Toy folder(10);
  CHECK(run(folder, command({"--set", "work.skip_every=5"})).code == 0);
}

TEST_CASE("run: --json prints one document on stdout and everything else on stderr") {
  const Toy folder(40);
  const Ended e =
      exits(3, run(folder, {kToy, "run", "--json", "toy.yaml", "--set", "work.fail_every=40"}));
  CHECK(has(e.err, "40 files: 39 ok"));
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["ending"] == "complete");
  CHECK(json["exit_code"] == 3);
  CHECK(json["rows"] == 117);
  CHECK(json["files"] == nlohmann::json{{"found", 40},
                                        {"ok", 39},
                                        {"skipped", 0},
                                        {"failed", 1},
                                        {"not_run", 0},
                                        {"ok_with_remark", 0},
                                        {"kept", 0}});
  REQUIRE(json["stages"].size() == 3);
  CHECK(json["stages"][1]["name"] == "work");
  CHECK(json["stages"][1]["items_out"] == 39);
  double seconds = 0;
  for (const auto& [state, value] : json["stages"][1]["seconds"].items())
    seconds += value.get<double>();
  const double slots = json["stages"][1]["concurrency"].get<double>();
  CHECK(seconds == doctest::Approx(slots * json["graph_seconds"].get<double>()).epsilon(0.05));
  CHECK(json["stages"][2]["summary"]["path"] == "toy.out");
  CHECK(json["stages"][2]["summary"]["bytes"] == 1500000);
  CHECK(json["stages"][1]["files_in"] == 40);
  CHECK(json["stages"][1]["call_seconds"]["calls"] == 40);
  CHECK(json["stages"][1]["call_seconds"]["p50"] <= json["stages"][1]["call_seconds"]["greatest"]);
  CHECK(json["stages"][1]["per_second"]["files"] > 0);
  CHECK(json["stages"][1]["used"] <= slots);
  CHECK(json["machine"]["cores"] >= 1);
  CHECK(json["machine"]["cores_used"] > 0);
  CHECK(json["first_row_seconds"] > 0);
  CHECK(json["slowest"].size() == 5);
  CHECK(json["edges"].size() == 2);
  const auto& edge = json["edges"][0];
  CHECK(edge["queue"] >= 2);
  CHECK_FALSE(edge.contains("start"));
  CHECK(json["memory"]["budget"] == 1 << 30);
  CHECK(json["memory"]["peak"] <= json["memory"]["budget"]);
  CHECK(json["remarks"] == nlohmann::json::array({{{"index", 39},
                                                   {"path", "toy/0039"},
                                                   {"status", "failed"},
                                                   {"stage", "work"},
                                                   {"reason", "is broken"}}}));
  CHECK(json["config"]["graph"]["work"]["fail_every"] == 40);
}

TEST_CASE("run: the report says how deep queues were, and how long a node waited for its own") {
  const Toy folder(40);
  const Ended e = exits(0, run(folder, command({"--json=r.json", "--set", "work.queue=8", "--set",
                                                "work.start_at=0.5"})));
  CHECK(has(e.out, "work began with 4 in its queue, "));
  const auto edges = nlohmann::json::parse(read_text(folder / "r.json"))["edges"];
  CHECK(edges[0]["queue"] == 8);
  CHECK(edges[0]["start"]["depth"] == 4);
  CHECK(edges[0]["start"]["wait_seconds"] > 0);
  CHECK(edges[1]["queue"] >= 2);  // twice the number of workers
}

TEST_CASE("run: --quiet prints nothing when all goes well, but warnings") {
  const Toy folder(4);
  for (const auto& [wait_ms, warning] :
       {std::pair("work.wait_ms=12", ""),
        std::pair("work.wait_ms=13", "warning: --set: work.wait_ms: 13 is an unlucky number\n")}) {
    const Ended e = exits(0, run(folder, command({"--quiet", "--set", wait_ms})));
    CHECK(e.out.empty());
    CHECK(e.err == warning);
  }
}

TEST_CASE("run: warnings of the plan are printed once, before the run") {
  const Toy folder(4);
  const Ended e = run(folder, command({"--set", "work.wait_ms=13"}));
  CHECK(e.err == "warning: --set: work.wait_ms: 13 is an unlucky number\n");
  CHECK_FALSE(has(e.out, "unlucky"));
}

TEST_CASE("run: a run that cannot start ends with 1, in the JSON document too") {
  const Toy folder(4);
  const Ended e = exits(1, run(folder, command({"--json", "--set", "work.break_down=true"})));
  CHECK(e.err == "melflow: toy_work: the disk is full; make room\n");
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["ending"] == "not_started");
  CHECK(json["exit_code"] == 1);
  CHECK(json["error"] == "toy_work: the disk is full; make room");
}

TEST_CASE("run: a wrong configuration has its problems in the JSON document") {
  const Toy folder(4);
  const Ended e = exits(78, run(folder, command({"--json", "--set", "work.wait=1"})));
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["ending"] == "not_started");
  CHECK(json["problems"].size() == 1);
  CHECK(json["problems"][0]["file"] == "--set");
}

TEST_CASE("run: more failures than max_failures end the run with 1") {
  const Toy folder(400);
  const Ended e =
      exits(1, run(folder, command({"--set", "work.fail_every=2", "--set", "max_failures=10",
                                    "--set", "work.wait_ms=1", "--json"})));
  CHECK(has(e.err, "melflow: "));
  CHECK(has(e.err, "max_failures"));
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["ending"] == "failed");
  CHECK(json["files"]["not_run"] > 0);
}

TEST_CASE("run: the first signal stops cleanly, with 75 and every file accounted for") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Toy folder(20'000);
    Process process(folder, slow_run());
    let_it_begin(process, folder);
    process.send(signal);
    const Ended e = exits(75, process.wait());
    CHECK(has(e.err, "stopping: what is under way will be finished"));
    CHECK(has(e.err, "melflow: stopped before the end, "));
    const auto json = nlohmann::json::parse(e.out);
    CHECK(json["ending"] == "stopped");
    CHECK(json["exit_code"] == 75);
    const auto& files = json["files"];
    CHECK(files["ok"] > 0);
    CHECK(files["not_run"] > 0);
    CHECK(files["ok"].get<int>() + files["not_run"].get<int>() == 20'000);
  }
}

TEST_CASE("run: the second signal ends at once with 130") {
  const Toy folder(20'000);
  // Nobody creates that file, so there is no clean end.
  Process process(folder, command({"--set", "work.until=never", "--set", "work.begun=begun"}));
  let_it_begin(process, folder);
  process.send(SIGINT);
  process.wait_until([&] { return has(read_text(folder / ".stderr"), "stopping: "); });
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
}

TEST_CASE("run: nobody at the other end of stdout and stderr is no reason to fail") {
  const Toy folder(40);
  exits(0, run(folder, {"/bin/bash", "-c",
                        "set -o pipefail; \"$0\" run toy.yaml --set work.wait_ms=13 "
                        "--json=report.json 2>&1 | true",
                        kToy}));
  CHECK(nlohmann::json::parse(read_text(folder / "report.json"))["ending"] == "complete");
}

TEST_CASE(
    "run: on a terminal there is a bar with a line for each node, and at the end it is gone") {
  const Toy folder(60);
  if (!Process::has_terminals()) return test::skip("there are no pseudo terminals");
  Process process(folder, command({"--set", "work.until=seen"}), {}, true);
  process.read_until("% busy");
  test::write_text(folder / "seen", "");
  const Ended e = exits(0, process.wait());
  CHECK(has(e.err, "/60 files"));
  CHECK(has(e.err, "left"));
  for (const char* node : {"\r\n  files ", "\r\n  work  ", "\r\n  end   "}) CHECK(has(e.err, node));
  CHECK(has(e.err, "\x1b[3A\r"));  // back to the line of the bar
  CHECK(e.err.ends_with("\r\x1b[J"));
  CHECK(e.out.starts_with("60 files: 60 ok"));

  Process without(folder, command({"--no-progress"}), {}, true);
  CHECK(without.wait().err.empty());
}

}  // namespace melflow::test::run_test
