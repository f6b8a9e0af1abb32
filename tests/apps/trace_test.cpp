// `--trace`: its contents agree with the figures of the same run.
#include "apps/report/trace_json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/python.h"

namespace melflow::test::trace_test {
namespace {

Ended traced(const TempFolder& folder, const std::string& set) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 40; ++i)
    test::write_wav(folder / fmt::format("data/\"{}\".wav", i), 16000 * (1 + i % 7), 16000, i);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 16000, n_fft: 512") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5, overwrite: true}\n");
  return test::run(folder, {MELFLOW_PROGRAM, "run", "p.yaml", "--set", set, "--trace", "t.json",
                            "--json=r.json"});
}

}  // namespace

TEST_CASE("trace: spans and counters add up to the report's accounts, flows begin and end") {
  const char* rows[] = {"workers=2", "memory.host=64MiB", "read.engine=threads",
                        "files.feed=preload", "files.files_per_task=1"};
  for (const char* set : rows) {
    CAPTURE(std::string(set));
    const TempFolder folder;
    exits(0, traced(folder, set));
    CHECK(test::python_says("apps/check_trace.py",
                            fmt::format("'{}' '{}'", folder / "t.json", folder / "r.json")) == "");
  }
}

TEST_CASE("trace: a path that cannot be written is told before the run") {
  const Toy folder(3);
  const Ended ended = exits(
      1, test::run(folder, {MELFLOW_TOY_PROGRAM, "run", "toy.yaml", "--trace", "none/t.json"}));
  CHECK(has(ended.err, "--trace: none/t.json"));
  CHECK(!std::filesystem::exists(folder / "toy.out"));
}

TEST_CASE("trace: what is over the bound is counted and told") {
  VisitLog visits(3);
  for (std::size_t i = 0; i < 5; ++i) {
    Visit visit;
    visit.index = i;
    visits.add(visit);
  }
  REQUIRE(visits.by_thread().size() == 1);
  CHECK(visits.by_thread().front()->size() == 3);
  CHECK(visits.by_thread().front()->back().index == 2);
  CHECK(visits.left_out() == 2);
  CHECK(has(left_out_text(visits), "the first 3 calls of stages are in the trace, 2 later ones"));
}

TEST_CASE("trace: the warning about calls that are not in it is printed once") {
  struct Row {
    std::vector<std::string> more;
    bool is_on_stdout;
  };
  for (const Row& row : {Row{{}, true}, Row{{"--quiet"}, false}, Row{{"--json"}, false},
                         Row{{"--json", "--quiet"}, false}, Row{{"--json=r.json"}, true}}) {
    const Toy folder(30);
    std::vector<std::string> command{MELFLOW_TOY_PROGRAM, "run", "toy.yaml", "--trace", "t.json",
                                     "--trace-calls",     "5"};
    command.insert(command.end(), row.more.begin(), row.more.end());
    CAPTURE(fmt::format("{}", fmt::join(row.more, " ")));
    const Ended e = exits(0, test::run(folder, command));
    const std::string said = "warning: --trace: the first 5 calls of stages are in the trace";
    const std::string& there = row.is_on_stdout ? e.out : e.err;
    const std::string& elsewhere = row.is_on_stdout ? e.err : e.out;
    const std::size_t at = there.find(said);
    REQUIRE(at != there.npos);
    CHECK(there.find(said, at + 1) == there.npos);
    CHECK_FALSE(has(elsewhere, said));
  }
}

TEST_CASE("trace: how many calls it keeps is asked for with a trace only") {
  const Toy folder(3);
  const Ended e =
      exits(2, test::run(folder, {MELFLOW_TOY_PROGRAM, "run", "toy.yaml", "--trace-calls", "5"}));
  CHECK(has(e.err, "--trace-calls requires --trace"));
}

}  // namespace melflow::test::trace_test
