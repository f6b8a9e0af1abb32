// melflow sweep: the combinations that are run, the messages about them, and what is left alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/report/format.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::sweep_test {

using Json = nlohmann::ordered_json;

namespace {

Ended sweep(const TempFolder& folder, std::vector<std::string> arguments) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 4; ++i)
    test::write_wav(folder / ("data/" + std::to_string(i) + ".wav"), 4000, 8000, i);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}\n");
  arguments.insert(arguments.begin(), {MELFLOW_PROGRAM, "sweep", "p.yaml"});
  return test::run(folder, arguments);
}

}  // namespace

TEST_CASE("sweep: every combination is run as often as asked, and the fastest comes first") {
  const TempFolder folder;
  const Ended e = exits(
      0, sweep(folder, {"--vary", "workers=1,2", "--vary", "mel.n_mels=10,20,30", "--repeat", "2",
                        "--figure", "rows", "--figure", "stages.mel.concurrency", "--json"}));
  const Json runs = Json::parse(e.out)["runs"];
  REQUIRE(runs.size() == 6);
  std::set<std::string> sets;
  double before = 1e300;
  for (const Json& run : runs) {
    sets.insert(run["set"].dump());
    const std::vector<double> rates = run["files_per_second"]["runs"];
    REQUIRE(rates.size() == 2);
    const double median = run["files_per_second"]["median"];
    CHECK(median == (rates[0] + rates[1]) / 2);
    CHECK(median <= before);
    before = median;
    const double workers = std::stod(run["set"]["workers"].get<std::string>());
    CHECK(run["figures"]["stages.mel.concurrency"]["median"] == workers);
    CHECK(run["figures"]["rows"]["median"].get<double>() > 0);
  }
  CHECK(sets.size() == 6);
  CHECK(sets.contains(R"({"workers":"2","mel.n_mels":"30"})"));
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  // No files are left beside it.
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.insert(entry.path().filename());
  CHECK(left.size() <= 4);  // data, p.yaml, the output of the process
}

TEST_CASE("sweep: sizes of the corpus come in their order, each held against the smallest") {
  const TempFolder folder;
  const Ended e = exits(0, sweep(folder, {"--vary", "files.limit=4,1,2", "--repeat", "1",
                                          "--seconds", "0", "--figure", "files.found", "--json"}));
  const Json runs = Json::parse(e.out)["runs"];
  REQUIRE(runs.size() == 3);
  const double least = runs[0]["files_per_second"]["median"];
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(runs[i]["figures"]["files.found"]["median"] == 1 << i);
    CHECK(runs[i]["of_the_least"].get<double>() ==
          doctest::Approx(runs[i]["files_per_second"]["median"].get<double>() / least));
  }
  const Ended table = sweep(folder, {"--vary", "files.limit=4,1", "--repeat", "2"});
  CHECK(has(table.out, "greatest  of the least  ms/file\n          1 "));
  CHECK_FALSE(has(table.out, "the first"));
}

TEST_CASE("sweep: a cache is measured empty and filled") {
  const TempFolder folder;
  const Ended cached = exits(
      0,
      sweep(folder, {"--vary", "files.feed=cache", "--set", "files.cache_path=c", "--repeat", "2",
                     "--figure", "edges.mel.mean_depth", "--figure", "stages.files.summary.added",
                     "--figure", "stages.files.summary.from_cache", "--json"}));
  const Json runs = Json::parse(cached.out)["runs"];
  REQUIRE(runs.size() == 2);
  for (const Json& run : runs) {
    const bool is_filled = run["cache"] == "filled";
    CHECK((is_filled || run["cache"] == "empty"));
    REQUIRE(run["files_per_second"]["runs"].size() == 2);
    for (int i = 0; i < 2; ++i) {
      CHECK(run["figures"]["stages.files.summary.added"]["runs"][i] == (is_filled ? 0 : 4));
      CHECK(run["figures"]["stages.files.summary.from_cache"]["runs"][i] == (is_filled ? 4 : 0));
    }
  }
  CHECK_FALSE(std::filesystem::exists(folder / "c"));
  const Ended table =
      sweep(folder, {"--vary", "files.feed=cache", "--set", "files.cache_path=c", "--repeat", "1"});
  CHECK(has(table.out, "files.feed   cache  files/s"));
  CHECK(has(table.out, "cache  filled"));
}

TEST_CASE("sweep: warnings are those that every combination has") {
  const TempFolder folder;
  const Ended e =
      exits(0, sweep(folder, {"--vary", "files.feed=stream,cache", "--set", "files.cache_path=c",
                              "--set", "mel.slots=2", "--repeat", "1"}));
  CHECK_FALSE(has(e.err, "cache_path"));
  CHECK(has(e.err, "warning: --set: mel.slots: has no effect without backend: cuda or auto"));
}

TEST_CASE("sweep: a table for people") {
  const TempFolder folder;
  const Ended e = exits(0, sweep(folder, {"--vary", "mel.n_mels=10,20", "--repeat", "1", "--figure",
                                          "memory.budget"}));
  CHECK(has(e.out, "mel.n_mels  files/s"));
  CHECK(has(e.out, "of the best  ms/file  memory.budget\n"));
  CHECK(std::count(e.out.begin(), e.out.end(), '\n') == 3);
  CHECK(has(e.out, "1.00"));
}

// The figures of the cells, row by row, and the marked one must equal those of --json.
TEST_CASE("sweep: a picture of two options has a cell for each combination") {
  const TempFolder folder;
  const Ended e = exits(0, sweep(folder, {"--vary", "workers=1,2", "--vary", "mel.n_mels=10,20,30",
                                          "--repeat", "1", "-o", "s.svg", "--json"}));
  const std::string svg = test::read_text(folder / "s.svg");
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK_FALSE(has(svg, "<script"));
  CHECK(has(svg, ">workers</text>"));
  CHECK(has(svg, ">mel.n_mels</text>"));
  std::size_t cells = 0;
  for (std::size_t at = svg.find("<title>"); at != svg.npos; at = svg.find("<title>", at + 1))
    ++cells;
  CHECK(cells == 6);
  const Json runs = Json::parse(e.out)["runs"];
  // In the order of the values, not of the speeds.
  std::size_t at = 0;
  for (const char* workers : {"1", "2"})
    for (const char* bands : {"10", "20", "30"})
      for (const Json& run : runs) {
        if (run["set"]["workers"] != workers || run["set"]["mel.n_mels"] != bands) continue;
        at = svg.find(">" + rate_text(run["files_per_second"]["median"]) + "</text>", at);
        CAPTURE(run.dump());
        REQUIRE(at != svg.npos);
        ++at;
      }
  // The fastest, which is the first of all runs, is in bold.
  CHECK(has(svg, ("font-weight=\"bold\">" + rate_text(runs[0]["files_per_second"]["median"]) +
                  "</text>")));
  CHECK(has(svg, "class=\"fastest\""));
}

TEST_CASE("sweep: a page of one option has a bar for each value, and the table") {
  const TempFolder folder;
  const Ended e = exits(
      0, sweep(folder, {"--vary", "mel.n_mels=10,20", "--repeat", "2", "-o", "s.html", "--json"}));
  const std::string page = test::read_text(folder / "s.html");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK_FALSE(has(page, "<script"));
  CHECK(has(page, "<title>melflow sweep: files per second of p.yaml</title>"));
  CHECK(has(page, "of the best  ms/file\n"));
  for (const Json& run : Json::parse(e.out)["runs"]) {
    const std::vector<double> rates = run["files_per_second"]["runs"];
    CHECK(has(page, ">" + rate_text(run["files_per_second"]["median"]) + "</text>"));
    CHECK(has(page, "<title>" + rate_text(std::min(rates[0], rates[1])) + " to " +
                        rate_text(std::max(rates[0], rates[1])) + " files/s</title>"));
  }
}

TEST_CASE("sweep: a figure that some combinations lack is an empty cell there") {
  const TempFolder folder;
  const std::vector<std::string> feeds{"--vary", "files.feed=stream,preload", "--figure",
                                       "filling_seconds"};
  const auto with = [&](const char* more) {
    std::vector<std::string> all = feeds;
    all.emplace_back(more);
    return exits(0, sweep(folder, all)).out;
  };
  for (const Json& run : Json::parse(with("--json"))["runs"]) {
    const Json& figure = run["figures"]["filling_seconds"];
    if (run["set"]["files.feed"] == "stream")
      CHECK(figure == Json::parse(R"({"median": null, "runs": []})"));
    else
      CHECK(figure["median"].is_number());
  }
  CHECK(has(with("--repeat=1"), "filling_seconds"));
}

TEST_CASE("sweep: what cannot be tried is said before the first run") {
  const TempFolder folder;
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& text) {
    const Ended e = sweep(folder, std::move(arguments));
    CAPTURE(e.err);
    CHECK(e.code == code);
    CHECK(has(e.err, text));
    CHECK(e.out == "");
  };
  refused({"--vary", "mel.n_mels=10,many"}, 78, "'many' is not an integer");
  refused({"--vary", "mel.quux=1"}, 78, "quux");
  refused({"--vary", "mel.n_mels"}, 2, "is not of the form NODE.OPTION=VALUE,VALUE");
  refused({"--vary", "mel.n_mels=10,"}, 2, "has an empty value");
  refused({"--vary", "mel.n_mels=10", "--figure", "memory.colour"}, 2,
          "--figure: the report of a run has no memory.colour");
  refused({"--vary", "mel.n_mels=10", "--figure", "ending"}, 2,
          "--figure: ending is not a number in the report");
  refused({}, 2, "--vary");
  refused({"--vary", "write.path=o.h5,other.h5"}, 2,
          "write (hdf5_write): a trial would write to o.h5");
  refused({"--set", "files.feed=cache", "--set", "files.cache_path=c", "--vary",
           "files.cache_path=cache"},
          2, "a trial would write to cache");
  refused({"--vary", "mel.n_mels=10,20,10"}, 2, "has the value 10 twice; leave one out");
  refused({"--vary", "mel.n_mels=10", "-o", "s.png"}, 2, "-o: s.png ends neither in .html nor in");
  refused({"--vary", "mel.n_mels=10", "-o", "none/s.svg"}, 1, "-o: none/s.svg");
  refused({"--vary", "mel.n_mels=10", "--vary", "workers=1", "--vary", "batch.files=1,2", "-o",
           "s.svg"},
          2, "-o: a picture shows one or two options, but 3 are varied; omit -o, or --vary batch");
  for (const char* name : {"s.svg", "o.h5", "other.h5", "cache"})
    CHECK_FALSE(std::filesystem::exists(folder / name));
}

}  // namespace melflow::test::sweep_test
