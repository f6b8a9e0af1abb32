// From sound files to rows and pictures with the real stages: run, inspect, show.
#include <doctest/doctest.h>
#include <hdf5.h>

#include <nlohmann/json.hpp>

#include "pipeline/base/cpu.h"
#include "pipeline/base/text.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/source_path.h"

namespace melflow::test::features_test {

namespace fs = std::filesystem;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

std::string pipeline(const std::string& name) {
  return fs::path(test::source_path("config/pipelines")) / (name + ".yaml");
}

Ended run_pipeline(const TempFolder& folder, const std::string& name,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{kMelflow, "run", pipeline(name)};
  command.insert(command.end(), more.begin(), more.end());
  return run(folder, command, {{"DATA", "data"}, {"OUT", "out.h5"}});
}

nlohmann::json inspect(const TempFolder& folder, const std::string& file = "out.h5") {
  const Ended e = exits(0, run(folder, {kMelflow, "inspect", file, "--json", "--files"}));
  return nlohmann::json::parse(e.out);
}

}  // namespace

TEST_CASE("features: where io_uring is not allowed, threads read, and it is said") {
  const TempFolder folder;
  for (unsigned i = 0; i < 20; ++i)
    test::write_clip(folder / "data/a/" + std::to_string(i) + ".wav", 8000, 0.3, i);
  for (const bool allowed : {true, false}) {
    CAPTURE(allowed);
    std::vector<std::string> command{kMelflow,         "run",
                                     pipeline("demo"), "--json",
                                     "--set",          "read.engine=io_uring",
                                     "--set",          "write.overwrite=true"};
    if (!allowed) command.insert(command.begin(), {MELFLOW_WITHOUT, "io_uring"});
    const Ended e = exits(0, run(folder, command, {{"DATA", "data"}, {"OUT", "out.h5"}}));
    CHECK(nlohmann::json::parse(e.out)["files"]["ok"] == 20);
    if (!allowed)
      CHECK(has(e.err + e.out,
                "io_uring cannot be used here (Operation not permitted); threads "
                "read instead"));
  }
}

TEST_CASE("features: no library says anything of its own, however many workers there are") {
  const TempFolder folder;
  for (unsigned i = 0; i < 20; ++i)
    test::write_clip(folder / "data/a/" + std::to_string(i) + ".wav", 8000, 0.3, i);
  const Ended e = exits(0, run_pipeline(folder, "demo",
                                        {"-q", "--workers", std::to_string(most_workers()), "--set",
                                         "write.statistics=all", "--set", "write.normalize=true"}));
  CHECK(e.out + e.err == "");
}

TEST_CASE("features: the demo makes a row every 10 ms, with the language as label") {
  const TempFolder folder;
  test::write_clip(folder / "data/en/sub/one.wav", 8000, 1.0, 1);
  test::write_clip(folder / "data/en/two.wav", 8000, 0.5, 2);
  test::write_clip(folder / "data/fr/one.wav", 8000, 2.0, 3);
  write_text(folder / "data/fr/not.wav", "no sound at all");
  write_text(folder / "data/fr/notes.txt", "not looked at");
  const Ended e = exits(3, run_pipeline(folder, "demo"));
  CHECK(has(e.out, "4 files: 3 ok, 0 skipped, 1 failed"));
  CHECK(has(e.out, "  fr/not.wav: decode: failed: "));

  const auto json = inspect(folder);
  CHECK(json["complete"] == true);
  CHECK(json["shape"] == nlohmann::json{101 + 51 + 201, 80});
  CHECK(json["dtype"] == "float32");
  CHECK(json["unit"] == "dB");
  CHECK(json["hop_length"] == 80);
  CHECK(json["counts"]["failed"] == 1);
  CHECK(json["labels"][0]["name"] == "en");
  CHECK(json["labels"][0]["rows"] == 152);
  CHECK(json["labels"][1]["name"] == "fr");
  CHECK(json["labels"][1]["files"] == 2);
  REQUIRE(json["files"].size() == 4);
  CHECK(json["files"][0]["path"] == "en/sub/one.wav");
  CHECK(json["files"][2]["status"] == "failed");
  CHECK(json["files"][3]["offset"] == 152);
  CHECK(json["files"][3]["count"] == 201);
  CHECK(json["remarks"][0]["path"] == "fr/not.wav");
  CHECK(json["config"]["graph"]["mel"]["n_mels"] == 80);
  CHECK(json["feature_fingerprint"].get<std::string>().size() == 32);

  const Ended text = exits(0, run(folder, {kMelflow, "inspect", "out.h5"}));
  CHECK(has(text.out, "[353, 80] float32, dB"));
  CHECK(has(text.out, "4 found: 3 ok, 0 skipped, 1 failed"));
  CHECK_FALSE(has(text.out, "en/two.wav"));
}

TEST_CASE("features: files and rows of each split are in the summary, the report and inspect") {
  const TempFolder folder;
  for (unsigned i = 0; i < 10; ++i)
    test::write_clip(folder / "data/a/" + std::to_string(i) + ".wav", 8000, 0.5, i);
  const std::vector<std::string> split{
      "--set", "files.splits=ratio",  "--set", "files.split_ratios={train: 0.8, test: 0.2}",
      "--set", "batch.files=2",       "--set", "workers=1",
      "--set", "write.overwrite=true"};
  const Ended text = exits(0, run_pipeline(folder, "demo", split));
  const auto has_lines = [](const std::string& out) {
    return has(out, "  train                 8 files           408 rows   0.") &&
           has(out, "  test                  2 files           102 rows   0.") &&
           has(out, " files/s), writing 0.");
  };
  CHECK(has_lines(text.out));
  std::vector<std::string> with_json = split;
  with_json.emplace_back("--json");
  const Ended json = run_pipeline(folder, "demo", with_json);
  CHECK(has_lines(json.err));
  const auto expected = nlohmann::json::parse(
      R"([{"name": "train", "files": 8, "rows": 408}, {"name": "test", "files": 2, "rows": 102}])");
  const auto report = nlohmann::json::parse(json.out);
  nlohmann::json told;
  for (const auto& stage : report["stages"])
    if (stage["name"] == "write") told = stage["summary"]["splits"];
  REQUIRE(told.size() == 2);
  double all = 0;
  for (auto& s : told) {
    const double seconds = s["seconds"];
    CHECK(seconds > 0);
    CHECK(s["write_seconds"] > 0.0);
    CHECK(s["files_per_second"].get<double>() * seconds ==
          doctest::Approx(s["files"].get<double>()).epsilon(0.5));  // both are rounded
    CHECK(s["rows_per_second"].get<double>() / s["files_per_second"].get<double>() ==
          doctest::Approx(51).epsilon(0.01));
    all += seconds;
    for (const char* time : {"seconds", "write_seconds", "files_per_second", "rows_per_second"})
      s.erase(time);
  }
  CHECK(all <= report["graph_seconds"].get<double>() + 0.001);
  CHECK(told == expected);
  auto stored = inspect(folder)["splits"];
  for (auto& s : stored) s.erase("seconds");
  CHECK(stored == expected);
  const Ended checked =
      exits(4, run_pipeline(folder, "demo",
                            {split[0], split[1], split[2], split[3], "--set",
                             "write.overwrite=true", "--set",
                             "expect.figures={stages.write.splits.train.seconds: \"< 60\", "
                             "stages.write.summary.splits.test.seconds: \"< 60\"}"}));
  CHECK(has(checked.out, "stages.write.splits.train.seconds"));
}

TEST_CASE("features: show draws a file that is named by its path or by the end of it") {
  const TempFolder folder;
  test::write_clip(folder / "data/en/one.wav", 8000, 1.0);
  test::write_clip(folder / "data/fr/one.wav", 8000, 1.0);
  test::write_clip(folder / "data/fr/two.wav", 8000, 1.0);
  write_text(folder / "data/fr/not.wav", "no sound");
  CHECK(run_pipeline(folder, "demo", {"--quiet"}).code == 3);
  const auto show = [&](const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{kMelflow, "show", "out.h5", "--file", file, "-o", "a.svg"};
    command.insert(command.end(), more.begin(), more.end());
    fs::remove(folder / "a.svg");
    return run(folder, command);
  };
  for (const char* name : {"en/one.wav", "two.wav", "fr/two.wav", "/two.wav"}) {
    INFO(name);
    CHECK(show(name).code == 0);
    CHECK(read_text(folder / "a.svg").starts_with("<svg "));
  }
  CHECK(show("en/one.wav", {"--rows", "10:30"}).out.find(", 20 rows of en/one.wav") !=
        std::string::npos);
  CHECK(show("en/one.wav", {"--rows", "-5:"}).out.find(", 5 rows of") != std::string::npos);

  struct Row {
    const char *file, *rows, *message;
  };
  const Row rows[] = {
      {"one.wav", ":",
       "'one.wav' could be any of en/one.wav, fr/one.wav; write more of the path\n"},
      {"ne.wav", ":", "there is no file 'ne.wav' in it"},
      {"en/on.wav", ":", "there is no file 'en/on.wav' in it. Did you mean 'en/one.wav'?"},
      {"not.wav", ":", "fr/not.wav has no rows: failed (decode: "},
      {"en/one.wav", "30:10", "there are no such rows; the recording has 101"},
      {"en/one.wav", "ten", "--rows ten: this is not a range of rows; write A:B, such as 0:500"},
      {"en/one.wav", "a:b", "--rows a:b: this is not a range of rows; write A:B, such as 0:500"},
  };
  for (const Row& row : rows) {
    const Ended e = show(row.file, {std::string("--rows=") + row.rows});
    CHECK(e.code == (has(row.message, "--rows") ? 2 : 1));
    CHECK(has(e.err, row.message));
    CHECK_FALSE(fs::exists(folder / "a.svg"));
  }
}

TEST_CASE("features: show keeps a file that is there, unless it is a picture or --force is given") {
  const TempFolder folder;
  test::write_clip(folder / "data/en/one.wav", 8000, 1.0);
  CHECK(run_pipeline(folder, "demo", {"--quiet"}).code == 0);
  write_text(folder / "one.svg", "of the user's");
  CHECK(has(exits(1, run(folder, {kMelflow, "show", "out.h5"})).err,
            "one.svg: this already exists; name another picture by --output, or replace "
            "it by --force\n"));
  CHECK(read_text(folder / "one.svg") == "of the user's");
  const std::vector<std::string> named{kMelflow, "show", "out.h5", "-o", "one.svg"};
  CHECK(has(exits(1, run(folder, named)).err, "one.svg: this exists already and is not melflow's"));
  CHECK(read_text(folder / "one.svg") == "of the user's");
  exits(0, run(folder, {kMelflow, "show", "out.h5", "--force"}));
  const std::string picture = read_text(folder / "one.svg");
  CHECK(picture.starts_with("<svg "));
  exits(0, run(folder, named));  // one of melflow's
  CHECK(read_text(folder / "one.svg") == picture);
}

TEST_CASE("features: show draws the first recording with rows, or several one below the other") {
  const TempFolder folder;
  test::write_clip(folder / "data/en/one.wav", 8000, 1.0);
  test::write_clip(folder / "data/en/two.wav", 8000, 1.0);
  write_text(folder / "data/en/a.wav", "no sound");
  CHECK(run_pipeline(folder, "demo", {"--quiet"}).code == 3);
  fs::copy(folder / "out.h5", folder / "again.h5");
  const auto show = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {kMelflow, "show"});
    return run(folder, more);
  };
  const auto height = [&](const std::string& picture) {
    const std::string svg = read_text(folder / picture);
    return std::stoi(svg.substr(svg.find(" height=\"") + 9));
  };
  CHECK(has(show({"out.h5"}).out, "one.svg: "));
  const int single = height("one.svg");
  CHECK(show({"out.h5", "--file", "two.wav", "--file", "one.wav"})
            .out.ends_with("101 rows of en/two.wav; 101 rows of en/one.wav\n"));
  CHECK(height("two.svg") == 2 * single);
  CHECK(
      show({"out.h5", "again.h5", "--file", "two.wav", "-o", "both.svg"})
          .out.ends_with("101 rows of en/two.wav in out.h5; 101 rows of en/two.wav in again.h5\n"));
  CHECK(height("both.svg") == 2 * single);

  for (const std::string name : {"x.jpg", "x.png"}) {
    CHECK(has(exits(2, show({"out.h5", "-o", name})).err,
              "--output " + name +
                  ": pictures are written as SVG; name it x.svg, which a browser, rsvg-convert or "
                  "Inkscape makes a PNG of\n"));
    CHECK_FALSE(fs::exists(folder / name));
  }
  test::write_clip(folder / "data/en/one.wav", 8000, 0.0);
  fs::remove(folder / "data/en/two.wav");
  fs::remove(folder / "data/en/a.wav");
  fs::remove(folder / "out.h5");
  CHECK(run_pipeline(folder, "demo", {"--quiet"}).code == 1);
  // A recording that another output took.
  test::write_clip(folder / "data/en/one.wav", 16000, 1.0);
  write_text(folder / "long.yaml", R"(version: 1
graph:
  files: {stage: file_list, root: data}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  way: {stage: route, from: decode, outputs: {long: {duration: "> 9s"}}, else: rest}
  segment: {stage: segment, from: way.long}
  batch: {stage: batch, from: segment}
  mel: {stage: mel, from: batch, sample_rate: 16000, n_fft: 512}
  write: {stage: hdf5_write, from: mel, path: out.h5}
  rest: {stage: discard, from: way.rest}
)");
  CHECK(run(folder, {kMelflow, "run", "long.yaml", "--quiet"}).code == 0);
  CHECK(has(show({"out.h5"}).err, "no recording in it has rows"));
}

TEST_CASE("features: names that are no UTF-8 spoil no report") {
  const TempFolder folder;
  test::write_clip(folder / "d\xE9/\xFF.wav", 8000, 0.2);
  write_text(folder / "d\xE9/\xFE.wav", "no sound");
  const Ended e = exits(3, run(folder, {kMelflow, "run", pipeline("demo"), "--json"},
                               {{"DATA", "d\xE9"}, {"OUT", "out.h5"}}));
  CHECK(has(e.out, R"("path": "\udcfe.wav")"));
  const auto json = nlohmann::json::parse(without_escaped_bytes(e.out));
  CHECK(json["files"]["ok"] == 1);
  CHECK(json["config"]["graph"]["mel"]["n_mels"] == 80);
  const std::string text = run(folder, {kMelflow, "inspect", "out.h5", "--json", "--files"}).out;
  CHECK(has(text, R"("path": "\udcff.wav")"));
  CHECK(run(folder, {kMelflow, "show", "out.h5", "--file", "\xFF.wav", "-o", "a.svg"}).code == 0);
}

TEST_CASE("features: windows of several frames are drawn and inspected, too") {
  const TempFolder folder;
  test::write_clip(folder / "data/en/one.wav", 8000, 2.0);
  exits(0, run_pipeline(folder, "demo",
                        {"--set", "segment.length=500ms", "--set", "mel.log=none", "--set",
                         "write.dtype=float16"}));
  const auto json = inspect(folder);
  CHECK(json["shape"] == nlohmann::json{4, 51, 80});
  CHECK(json["dtype"] == "float16");
  CHECK(json["unit"] == "power");
  exits(0, run(folder, {kMelflow, "show", "out.h5", "--file", "one.wav", "-o", "a.svg"}));
}

TEST_CASE("features: inspect says what is wrong with a file that is none of its own") {
  const TempFolder folder;
  write_text(folder / "new.h5.part", "not yet");
  const hid_t other =
      H5Fcreate((folder / "other.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(other);
  struct Row {
    const char *file, *message;
  };
  const Row rows[] = {
      {"new.h5",
       "new.h5: there is no such file; new.h5.part is there: a run is still writing "
       "it, or was interrupted before it was complete\n"},
      {"new.h5.part",
       "new.h5.part: cannot be read yet: a run is still writing it, or died while "
       "it did\n"},
      {"other.h5", "other.h5: this is an HDF5 file, but none that melflow wrote"},
  };
  for (const Row& row : rows)
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"inspect", row.file},
          std::vector<std::string>{"show", row.file, "--file", "a", "-o", "a.svg"}}) {
      std::vector<std::string> command{kMelflow};
      command.insert(command.end(), more.begin(), more.end());
      CHECK(has(exits(1, run(folder, command)).err, std::string("melflow: ") + row.message));
    }
}

}  // namespace melflow::test::features_test
