// melflow tune: the proposed changes, when a gain is real, how a file is edited, and the whole
// verb.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/profile/tuning.h"
#include "config/yaml_text.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::tune_test {

using Json = nlohmann::ordered_json;

namespace {

void write_pipeline(const TempFolder& folder) {
  std::filesystem::create_directories(folder / "data");
  for (unsigned i = 0; i < 4; ++i)
    test::write_wav(folder / ("data/" + std::to_string(i) + ".wav"), 4000, 8000, i);
  test::write_text(folder / "p.yaml",
                   "# mine\n" + test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256") +
                       "  write: {stage: hdf5_write, from: mel, path: o.h5}  # the end\n");
}

std::vector<TunableOption> two_options() {
  return {{"workers", "", "auto", {"2"}, "1"}, {"read.queue", "read", "auto", {"64"}, "1"}};
}

}  // namespace

TEST_CASE("tune: hints come first, then all usual values, then what belongs to the limit") {
  Limits limits;
  limits.node = "read";
  limits.hints = {{{{"memory.host", "2GiB"}}}, {{{"workers", "4"}}}};
  TuningSearch search(two_options(), 1);
  CHECK(search.next({}, limits) == Settings{{"workers", "4"}});  // memory.host is not tunable
  CHECK(search.next({}, limits) == Settings{{"read.queue", "auto"}, {"workers", "auto"}});
  std::set<Settings> at_limit{search.next({}, limits), search.next({}, limits)};
  CHECK(at_limit == std::set<Settings>{{{"read.queue", "64"}}, {{"read.queue", "auto"}}});
  std::set<Settings> others{search.next({}, limits), search.next({}, limits)};
  CHECK(others == std::set<Settings>{{{"workers", "2"}}, {{"workers", "auto"}}});
  CHECK(search.next({}, limits).empty());
  // After a change that was kept, the others are tried again.
  CHECK(search.next({{"workers", "2"}}, limits).size() == 2);
}

TEST_CASE("tune: a gain is real where its interval is above 1 and it is worth a change") {
  const Gain same = gain_of({{100, 100, 100}, {99, 101, 100}}, 1);
  CHECK(same.middle == 1);
  CHECK_FALSE(same.is_real());
  const Gain twice = gain_of({{100, 110, 90}, {200, 220, 180}}, 1);
  CHECK(twice.low == 2);
  CHECK(twice.high == 2);
  CHECK(twice.is_real());
  CHECK_FALSE(gain_of({{100, 100, 100}, {102, 102, 102}}, 1).is_real());  // too little
  const Gain wide = gain_of({{100, 100, 100}, {150, 150, 50}}, 1);
  CHECK(wide.middle == 1.5);
  CHECK(wide.low == 0.5);
  CHECK_FALSE(wide.is_real());
}

TEST_CASE("tune: values are put into a text, and all else stays") {
  const std::string text =
      "# mine\n"
      "version: 1  # the only one\n"
      "graph:\n"
      "  read: {stage: disk_read, queue: 1, from: files}  # ä\n"
      "  mel:\n"
      "    stage: mel   # bands\n"
      "    from: read\n"
      "    concurrency: 1   # one\n";
  CHECK(edited_text(text, "p.yaml",
                    {{"workers", "auto", "a"},
                     {"read.queue", "auto", "b"},
                     {"read.buffer", "1MiB", "c"},
                     {"mel.queue", "64", "d"},
                     {"mel.concurrency", "2", "e"},
                     {"none.queue", "1", "f"}}) ==
        "# mine\n"
        "version: 1  # the only one\n"
        "# a\n"
        "workers: auto\n"
        "graph:\n"
        "  # b\n"
        "  # c\n"
        "  read: {buffer: 1MiB, stage: disk_read, queue: auto, from: files}  # ä\n"
        "  mel:\n"
        "    stage: mel   # bands\n"
        "    # d\n"
        "    queue: 64\n"
        "    from: read\n"
        "    # e\n"
        "    concurrency: 2   # one\n");
}

TEST_CASE("tune: trials leave nothing behind, change options of speed alone, and are told") {
  const TempFolder folder;
  write_pipeline(folder);
  const std::string before = test::read_text(folder / "p.yaml");
  const Ended e =
      exits(0, test::run(folder, {MELFLOW_PROGRAM, "tune", "p.yaml", "--budget", "300ms", "--json",
                                  "-o", "tuned.yaml", "--no-progress"}));
  const Json out = Json::parse(e.out);
  const std::set<std::string> of_speed{"workers", "files_per_task", "concurrency", "queue",
                                       "buffer",  "depth",          "engine",      "whole",
                                       "block",   "files"};
  for (const Json& tried : out["tried"]) {
    const double low = tried["times_as_fast"]["low"], high = tried["times_as_fast"]["high"];
    CHECK(low <= high);
    for (const auto& [name, value] : tried["set"].items())
      CHECK(of_speed.contains(name.substr(name.find('.') + 1)));
  }
  CHECK(test::read_text(folder / "p.yaml") == before);
  CHECK_FALSE(std::filesystem::exists(folder / "o.h5"));
  CHECK(std::filesystem::exists(folder / "tuned.yaml") == out["is_faster"]);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK_FALSE(entry.path().filename().string().starts_with(".melflow-scratch"));
}

TEST_CASE("tune: what would help and is not tried is told") {
  const TempFolder folder;
  for (unsigned i = 0; i < 40; ++i)
    test::write_clip(folder / "long/" + std::to_string(i) + ".flac", 44100, 20, i);
  test::write_text(folder / "p.yaml",
                   "version: 1\n"
                   "memory: {host: 16MiB}\n"
                   "workers: 2\n"
                   "graph:\n"
                   "  files: {stage: file_list, root: long}\n"
                   "  read: {stage: disk_read, from: files}\n"
                   "  decode: {stage: decode, from: read}\n"
                   "  segment: {stage: segment, from: decode}\n"
                   "  rows: {stage: samples, from: segment, sample_rate: 44100}\n"
                   "  out: {stage: npy_write, from: rows, path: o.npy, dtype: int16}\n");
  const Ended e = exits(
      0, test::run(folder, {MELFLOW_PROGRAM, "tune", "p.yaml", "--budget", "100ms", "--json"}));
  const Json out = Json::parse(e.out);
  INFO(out.dump(1));
  REQUIRE(out["not_tried"].size() == 1);
  CHECK(out["not_tried"][0]["set"].contains("memory.host"));
}

TEST_CASE("tune: what cannot be done is said before the first run") {
  const TempFolder folder;
  write_pipeline(folder);
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& text) {
    arguments.insert(arguments.begin(), {MELFLOW_PROGRAM, "tune", "p.yaml"});
    const Ended e = test::run(folder, arguments);
    CAPTURE(e.err);
    CHECK(e.code == code);
    CHECK(has(e.err, text));
    CHECK(e.out == "");
  };
  refused({"--budget", "soon"}, 2,
          "'soon' is not a time such as 11h50m, 90s, 1.5h or 90 (seconds)");
  refused({"-o", "none/t.yaml"}, 1, "-o: none/t.yaml");
  refused({"-o", "p.yaml"}, 1, "-o: p.yaml");
  refused({"--set", "mel.quux=1"}, 78, "quux");
}

}  // namespace melflow::test::tune_test
