// melflow explain: a trial that leaves no files, and its output.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::explain_verb_test {
namespace {

const std::string kMelflow = MELFLOW_PROGRAM;
const std::string kToy = MELFLOW_TOY_PROGRAM;

// Makes a few recordings, which go into features.h5 and, by a tap, into a folder.
void write_recordings(const TempFolder& folder) {
  for (unsigned i = 0; i < 6; ++i)
    test::write_clip(folder / ("clips/" + std::to_string(i) + ".wav"), 16000, 0.5, i + 1);
  write_text(folder / "mine.yaml", test::nodes_to_mel("root: clips", "preset: whisper") +
                                       "  write: {stage: hdf5_write, from: mel, path: \"${OUT}\"}\n"
                                       "  look: {stage: tap, from: mel, path: taps}\n");
}

// One item at a time, each of which waits: more concurrency would help.
std::vector<std::string> waiting(const std::vector<std::string>& more) {
  std::vector<std::string> out{kToy,    "explain",        "toy.yaml", "--no-progress",
                               "--set", "work.wait_ms=5", "--set",    "work.concurrency=1"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace

TEST_CASE("explain: the output is left as it was, and nothing is left beside it") {
  const Filled<write_recordings> folder;
  write_text(folder / "out.h5", "of the user's");
  const auto before = names_in(folder.path());
  const Ended e = run(folder, {kMelflow, "explain", "mine.yaml", "--no-progress", "--var",
                               "OUT=out.h5", "--seconds", "0"});
  CAPTURE(e.err);
  CHECK(e.code == 0);
  CHECK(read_text(folder / "out.h5") == "of the user's");
  auto after = names_in(folder.path());
  after.erase(".stdout");
  after.erase(".stderr");
  auto expected = before;
  expected.erase(".stdout");
  expected.erase(".stderr");
  CHECK(after == expected);
  CHECK(has(e.out, "trial: 6 files in "));
  CHECK(has(e.out, "\nlimited by: "));
  CHECK(has(e.out,
            "\nthe most that each allows (files/s while the stages work), and how much of it the "
            "run used:\n"));
  CHECK(has(e.out, " mel, "));
}

TEST_CASE("explain: --verify measures the best hint in pairs") {
  const Toy folder(40);
  const Ended e = run(folder, waiting({"--workers", "4", "--verify", "--json"}));
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["files"] == 40);
  CHECK(json["limit"]["cause"] == "concurrency");
  CHECK(json["limit"]["node"] == "work");
  const auto& v = json["verification"];
  CHECK(v["set"] == json["limit"]["hints"][0]["set"]);
  CHECK(v["set"].contains("work.concurrency"));
  CHECK(v["files_per_second"]["without"].size() == 3);
  CHECK(v["files_per_second"]["with"].size() == 3);
  CHECK(v["measured"]["least"] <= v["measured"]["middle"]);
  CHECK(v["measured"]["middle"] <= v["measured"]["greatest"]);
  CHECK(v["predicted"]["low"] <= v["predicted"]["likely"]);
}

TEST_CASE("explain: --workers is changed, too, where the hint says so") {
  const Toy folder(60);
  const Ended e = run(folder, {kToy, "explain", "toy.yaml", "--no-progress", "--verify", "--set",
                               "work.wait_ms=3", "--workers", "1"});
  CAPTURE(e.err);
  CHECK(e.code == 0);
  CHECK(has(e.out, "would help: workers: "));
  CHECK(has(e.out, "\nverified: workers: "));
  CHECK(has(e.out, " measured "));
}

TEST_CASE("explain: after --seconds no more files are begun") {
  const Toy folder(1'000'000);
  const Ended e = run(folder, waiting({"--seconds", "0.3"}));
  CAPTURE(e.err);
  CHECK(e.code == 0);
  CHECK(has(e.out, "trial of the first files: "));
}

TEST_CASE("explain: without a file there is nothing to say") {
  const Toy folder(0);
  const Ended e = exits(1, run(folder, {kToy, "explain", "toy.yaml", "--no-progress"}));
  CHECK(has(e.out, "no result: no file was processed"));
}

TEST_CASE("explain: a trial that fails, and a folder that takes no trial") {
  const Toy folder(10);
  const Ended failed = exits(1, run(folder, {kToy, "explain", "toy.yaml", "--no-progress", "--set",
                                             "work.break_down=true"}));
  CHECK(has(failed.err, "the disk is full; make room"));
  write_recordings(folder);
  const Ended nowhere = exits(1, run(folder, {kMelflow, "explain", "mine.yaml", "--no-progress",
                                              "--var", "OUT=no/such/folder/out.h5"}));
  CHECK(has(nowhere.err,
            "write: cannot make a folder for a trial output in no/such/folder: No such file"));
  CHECK_FALSE(std::filesystem::exists(folder / "taps"));
}

TEST_CASE("explain: a cache is used where there is one, and none is left where there was none") {
  const Filled<write_recordings> folder;
  write_text(
      folder / "cached.yaml",
      test::nodes_to_mel("root: clips, feed: cache, cache_path: deep/cache", "preset: whisper") +
          "  write: {stage: hdf5_write, from: mel, path: out.h5, overwrite: true}\n");
  const std::vector<std::string> trial{kMelflow, "explain", "cached.yaml", "--no-progress"};
  const auto before = names_in(folder.path());
  const Ended first = run(folder, trial);
  CAPTURE(first.err);
  CHECK(first.code == 0);
  auto after = names_in(folder.path());
  after.erase(".stdout");
  after.erase(".stderr");
  CHECK(after == before);
  // Another pipeline's cache is in the same folder; neither that nor its own is touched.
  CHECK(run(folder, {kMelflow, "run", "cached.yaml", "-q"}).code == 0);
  write_text(folder / "deep/cache/other.melcache", "of another");
  const auto caches = [&] {
    std::map<std::string, std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(folder / "deep/cache"))
      out[e.path().filename()] = read_text(e.path());
    return out;
  };
  const auto made = caches();
  CHECK(made.size() == 2);
  CHECK(run(folder, trial).code == 0);
  CHECK(caches() == made);
  auto other = trial;
  other.insert(other.end(), {"--set", "decode.downmix=left"});
  CHECK(run(folder, other).code == 0);
  CHECK(caches() == made);
}

TEST_CASE("explain: Ctrl-C ends the trials, and what they wrote is removed") {
  const Filled<write_recordings> folder;
  write_toy(folder, 1'000'000);
  Process process(folder, waiting({"--seconds", "0", "--set", "work.begun=begun", "--verify"}));
  process.wait_until([&] { return std::filesystem::exists(folder / "begun"); });
  process.send(SIGINT);
  const Ended e = exits(75, process.wait());
  CHECK(has(e.err, "stopped; what the trials wrote is removed"));
  CHECK_FALSE(has(e.out, "verified"));
}

}  // namespace melflow::test::explain_verb_test
