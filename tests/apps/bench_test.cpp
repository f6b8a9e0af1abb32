// melflow bench: its output, how it stops, and that it leaves no files.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/printing.h"
#include "tests/support/skip.h"
#include "tests/support/small_disk.h"
#include "tests/support/source_path.h"

namespace melflow::test::bench_test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> command(const std::string& dir, const std::vector<std::string>& more) {
  std::vector<std::string> out{MELFLOW_PROGRAM, "bench", "--dir", dir};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

const std::vector<std::string> kQuick{"--seconds", "10ms", "--repeat", "2"};

// Every machine can measure these.
const char* const kAlways[] = {
    "read files in the page cache, ", "decode WAV, 1 core", "decode FLAC, 1 core",
    "cores that are free, of ",       "mel, 1 core",        "write rows into HDF5",
    "write rows into .npy",           "the graph, "};
// These are measured, or the reason why not is printed.
const char* const kSometimes[] = {"read files from the disk, 32 at once",
                                  "decode Ogg Vorbis, 1 core", "decode MP3, 1 core"};

const Json* find(const Json& list, const std::string& beginning) {
  for (const Json& entry : list)
    if (entry["what"].get<std::string>().starts_with(beginning)) return &entry;
  return nullptr;
}

}  // namespace

TEST_CASE("bench: JSON has every row with positive figures, or why not; nothing is left behind") {
  const TempFolder folder;
  fs::create_directory(folder / "disk");
  std::vector<std::string> more = kQuick;
  more.emplace_back("--json");
  const Ended e = exits(0, test::run(folder, command("disk", more)));
  CHECK(e.err.empty());
  const Json out = Json::parse(e.out);
  CHECK(out["dir"] == "disk");
  CHECK(out["repeat"] == 2);
  CHECK(out["stopped"] == false);
  CHECK(out["cores"].get<int>() > 0);
  CHECK_FALSE(out["gpu"].get<std::string>().empty());
  for (const char* what : kAlways) {
    CAPTURE(what);
    CHECK(find(out["measured"], what) != nullptr);
  }
  for (const char* what : kSometimes) {
    CAPTURE(what);
    CHECK((find(out["measured"], what) != nullptr) != (find(out["not_measured"], what) != nullptr));
  }
  for (const Json& m : out["measured"]) {
    CAPTURE(m.dump());
    const std::vector<double> figures = m["figures"];
    CHECK(figures.size() <= 2);
    CHECK(m["least"].get<double>() > 0);
    CHECK(m["least"] <= m["median"]);
    CHECK(m["median"] <= m["greatest"]);
    CHECK(m["greatest"] == *std::max_element(figures.begin(), figures.end()));
    CHECK_FALSE(m["unit"].get<std::string>().empty());
  }
  for (const Json& m : out["not_measured"]) CHECK_FALSE(m["why"].get<std::string>().empty());
  CHECK(fs::is_empty(folder / "disk"));
}

TEST_CASE("bench: the table has every row; --json=FILE beside it has the same medians") {
  const TempFolder folder;
  fs::create_directory(folder / "tmp");
  std::vector<std::string> line{MELFLOW_PROGRAM, "bench", "--json=b.json"};
  line.insert(line.end(), kQuick.begin(), kQuick.end());
  const Ended e = exits(0, test::run(folder, line, {{"TMPDIR", folder / "tmp"}}));
  CHECK(has(e.out, "\nfiles: " + (folder / "tmp") + "\n"));
  CHECK(has(e.out, "median"));
  CHECK(has(e.out, "\nGPU: "));
  for (const char* what : kAlways) CHECK(has(e.out, std::string("\n") + what));
  for (const char* what : kSometimes) CHECK(has(e.out, std::string("\n") + what));
  const Json out = Json::parse(test::read_text(folder / "b.json"));
  CHECK(out["dir"] == folder / "tmp");
  CHECK(out["measured"].size() + out["not_measured"].size() ==
        static_cast<std::size_t>(std::count(e.out.begin(), e.out.end(), '\n')) - 6);
  CHECK(fs::is_empty(folder / "tmp"));
}

TEST_CASE("bench: its pipelines run on recordings of the user, without warnings") {
  const TempFolder folder;
  test::write_clip(folder / "clips/a.wav", 22050, 0.5);
  for (const std::string name : {"read", "mel", "graph"}) {
    const Ended e =
        exits(0, test::run(folder,
                           {MELFLOW_PROGRAM, "run", "--quiet", "--json",
                            test::source_path("config/pipelines/bench/" + name + ".yaml")},
                           {{"DATA", "clips"}}));
    CHECK(e.err.empty());
    CHECK(Json::parse(e.out)["files"]["ok"] == (name == "graph" ? 20000 : 1));
  }
}

TEST_CASE("bench: a signal ends it with what was measured so far, and nothing is left behind") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TempFolder folder;
    fs::create_directory(folder / "disk");
    Process process(folder, command("disk", {"--seconds", "3600", "--json"}));
    process.wait_until([&] { return !fs::is_empty(folder / "disk"); });
    // Signals are handled before the first file exists.
    process.wait_until([&] {
      return std::any_of(fs::directory_iterator(folder / "disk"), fs::directory_iterator(),
                         [](const auto& entry) { return !fs::is_empty(entry.path()); });
    });
    process.send(signal);
    const Ended e = exits(75, process.wait());
    CHECK(has(e.err, "melflow: stopped; the figures are of the rounds so far"));
    const Json out = Json::parse(e.out);
    CHECK(out["stopped"] == true);
    const Json* graph = find(out["not_measured"], "the graph, ");
    REQUIRE(graph != nullptr);
    CHECK((*graph)["why"] == "there was no time for it");
    CHECK(fs::is_empty(folder / "disk"));
  }
}

TEST_CASE("bench: what cannot be measured is said, and nothing is left behind") {
  const TempFolder folder;
  test::write_text(folder / "file", "");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& text,
                           int code = 2) {
    arguments.insert(arguments.begin(), {MELFLOW_PROGRAM, "bench"});
    const Ended e = test::run(folder, arguments);
    CAPTURE(e.err);
    CHECK(e.code == code);
    CHECK(has(e.err, text));
    CHECK(e.out.empty());
  };
  refused({"--dir", "nowhere"}, "--dir nowhere: No such file or directory");
  refused({"--dir", "file"}, "--dir file: this is not a folder");
  // Not even root can write where a path would be too long.
  constexpr std::size_t kLongestPath = 4095, kRoom = 4, kPiece = 200;
  std::string full = folder.path();
  while (full.size() + kRoom < kLongestPath)
    full += '/' + std::string(std::min(kPiece, kLongestPath - kRoom - full.size()), 'd');
  fs::create_directories(full);
  refused({"--dir", full}, ": no folder can be made there: File name too long", 1);
  refused({"--json=no/b.json"}, "--json: no/b.json", 1);
  refused({"--seconds", "0"},
          "--seconds: '0' is not a time; write one above 0, such as 90s or 1.5h");
  refused({"--repeat", "0"}, "--repeat");
  const Ended e =
      exits(2, test::run(folder, {MELFLOW_PROGRAM, "bench"}, {{"TMPDIR", folder / "file"}}));
  CHECK(has(e.err, "TMPDIR: "));
}

TEST_CASE("bench: files in memory are not read from a disk; a disk that is full is told") {
  const TempFolder folder;
  const SmallDisk memory(256 << 20), small(30 << 20);
  if (!memory.ok() || !small.ok()) return test::skip("no file system can be mounted here");
  std::vector<std::string> more = kQuick;
  more.emplace_back("--json");
  const Ended e = exits(0, test::run(folder, command(memory.path(), more)));
  const Json out = Json::parse(e.out);
  const Json* from_disk = find(out["not_measured"], "read files from the disk");
  REQUIRE(from_disk != nullptr);
  CHECK(has((*from_disk)["why"], "this file system keeps files in memory"));

  const Ended full = exits(1, test::run(folder, command(small.path(), kQuick)));
  CHECK(has(full.err, "rows."));
  CHECK(has(full.err, "No space left on device"));
  CHECK(fs::is_empty(small.path()));
}

}  // namespace melflow::test::bench_test
