// Printing of names, labels, values and reasons from outside: nothing controls the terminal,
// lengths are limited, and with --quiet failures are still printed.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "stages/output/formats/feature_file.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/audio_files.h"

namespace melflow::test::printing_test {
namespace {

const std::string kToy = MELFLOW_TOY_PROGRAM;

// Clears the screen, ends a line, sets a title, writes from right to left, and ends in bytes that
// are not UTF-8.
const std::string kEvil =
    "x\x1b[2J\r\nfake: ok\x7f\xC2\x9B"
    "31m\xE2\x80\xAE\x07\x9B";
const std::string kShown = "x\\u001b[2J\\u000d\\nfake: ok\\u007f\\u009b31m\\u202e\\u0007\\x9b";

// Whether a text has only lines of visible characters.
bool is_harmless(const std::string& text) {
  for (const char* code : {"\xC2\x9B", "\xE2\x80\xAE"})
    if (has(text, code)) return false;
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return (c >= 0 && c < 0x20 && c != '\n') || c == 0x7F; }) &&
         !has(text, "\nfake");
}

void write_pipeline(const TempFolder& folder, const std::string& mel = "") {
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: data, labels: parent_dir",
                                      "sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 20" + mel) +
                       "  write: {stage: hdf5_write, from: mel, path: out.h5, overwrite: true}\n");
}

}  // namespace

TEST_CASE("printing: names of files and labels cannot steer the terminal, in no verb") {
  const TempFolder folder;
  test::write_clip(folder / ("data/" + kEvil + "/good.wav"), 8000, 0.3, 1);
  test::write_text(folder / ("data/" + kEvil + "/" + kEvil + ".wav"), "no sound");
  write_pipeline(folder, ", log: db");
  for (const bool quiet : {false, true}) {
    const Ended e = exits(3, melflow_in(folder, {"run", "p.yaml", quiet ? "-q" : "--no-progress"}));
    CHECK(is_harmless(e.out));
    CHECK(is_harmless(e.err));
    CHECK(has(quiet ? e.err : e.out, "  " + kShown + "/" + kShown + ".wav: decode: failed: "));
  }
  const std::string name = kShown + "/good.wav";
  struct Row {
    std::vector<std::string> arguments;
    int code;
    std::string part;
  };
  const Row rows[] = {
      {{"inspect", "out.h5", "--files"}, 0, name + "\n"},
      {{"inspect", kEvil}, 1, kShown.substr(0, 10)},
      {{"show", "out.h5", "--file", "good.wav", "-o", "a.svg"}, 0, " of " + name + "\n"},
      {{"show", "out.h5", "--file", ".wav", "-o", "a.svg"}, 1, "there is no file '.wav'"},
      {{"show", "out.h5", "--file", kEvil + ".wav", "-o", "a.svg"}, 1, name.substr(0, 10)},
      {{"show", "out.h5", "--file", kEvil, "-o", "a.svg"}, 1, "there is no file '" + kShown + "'"},
      {{"show", "out.h5", "--file", "good.wav", "-o", "a.svg", "--rows", kEvil}, 2, "write A:B"},
      {{"update", "p.yaml", "--dry-run"}, 0, "failed before"},
      {{"plan", "p.yaml", "-o", "job"}, 0, "2 files"},
      {{"work", "job"}, 0, "1 part made by this worker"},
      {{"status", "job"}, 0, "job"},
      {{"merge", "job"}, 3, "1 failed"},
      {{"verify", "out.h5", "--recompute", "100%"}, 0, "bit for bit"},
      {{"compare", "out.h5", "p.yaml"}, 0, "equal"},
      {{"compare", "out.h5", "p.yaml", "--set", "mel.log=" + kEvil}, 78, kShown},
      {{"compare", kEvil, "out.h5"}, 78, kShown},
      {{"compare", kEvil + ".h5", "out.h5"}, 2, kShown.substr(0, 10)},
      {{"validate", "p.yaml", "--set", "files.root=" + kEvil}, 0, "ok, 1 warning: "},
      {{"validate", "p.yaml", "--set", "mel.log=" + kEvil}, 78, "'" + kShown + "'"},
      {{"validate", kEvil}, 78, kShown + ": there is no such file"},
      {{"stages", kEvil}, 2, "'" + kShown + "'"},
      {{"graph", "p.yaml", kEvil}, 2, "fake"},
      {{kEvil}, 2, "there is no command '" + kShown + "'"},
      {{"init", kEvil + "/x"}, 1, kShown.substr(0, 10)},
  };
  for (const Row& row : rows) {
    const Ended e = exits(row.code, melflow_in(folder, row.arguments));
    INFO(row.arguments.front() << ": " << e.code << "\n" << e.out << e.err);
    CHECK(has(e.out + e.err, row.part));
    CHECK(is_harmless(e.out));
    CHECK(is_harmless(e.err));
  }
}

TEST_CASE("printing: nor can they where rows are damaged, or are another now") {
  const TempFolder folder;
  const std::string name = kShown + "/good.wav", path = folder / ("data/" + kEvil + "/good.wav");
  test::write_clip(path, 8000, 0.3, 1);
  write_pipeline(folder);
  REQUIRE(melflow_in(folder, {"run", "p.yaml", "-q"}).code == 0);
  const auto time = std::filesystem::last_write_time(path);
  test::write_clip(path, 8000, 0.3, 2);
  std::filesystem::last_write_time(path, time);
  const Ended other = melflow_in(folder, {"verify", "out.h5", "--recompute", "100%"});
  CHECK(has(other.out, "\n  " + name + "\n"));
  CHECK(is_harmless(other.out));
  std::uint64_t at = 0;
  {
    const FeatureFile file(folder / "out.h5");
    at = file.rows_at().value();
  }
  std::fstream(folder / "out.h5", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(at))
      .put('x');
  const Ended wrong = melflow_in(folder, {"verify", "out.h5"});
  CHECK(has(wrong.out, "\n  " + name + "\n"));
  CHECK(is_harmless(wrong.out));
  const Ended repaired = melflow_in(folder, {"repair", "out.h5"});
  CHECK(has(repaired.out, "  out.h5: " + name + "\n"));
  CHECK(is_harmless(repaired.out));
}

TEST_CASE("printing: nor can paths from the command line, wherever they are told") {
  const TempFolder folder;
  test::write_clip(folder / "data/good.wav", 8000, 0.3, 1);
  write_pipeline(folder);
  const std::string yaml = kEvil + ".yaml", h5 = kEvil + ".h5";
  std::filesystem::copy_file(folder / "p.yaml", folder / yaml);
  struct Row {
    std::vector<std::string> arguments;
    int code;
    std::string part;
  };
  const Row rows[] = {
      {{"run", yaml, "--set", "write.path=" + h5}, 0, kShown + ".h5: 19 rows"},
      {{"run", yaml, "--set", "write.path=" + h5, "--set", "write.overwrite=false"},
       1,
       kShown + ".h5: exists already"},
      {{"run", yaml, "--json=" + kEvil + "/r.json"}, 1, kShown},
      {{"update", yaml, "--set", "write.path=" + h5}, 0, kShown + ".h5: "},
      {{"inspect", h5}, 0, kShown + ".h5, "},
      {{"inspect", "--features", h5}, 0, "mel.n_mels: 20"},
      {{"compare", h5, yaml}, 0, "equal"},
      {{"compare", h5, yaml, "--set", "mel.n_mels=21"},
       1,
       "mel.n_mels: 20 in " + kShown + ".h5, 21 in " + kShown + ".yaml"},
      {{"show", h5, "--file", "good.wav", "-o", kEvil + ".svg"}, 0, kShown + ".svg: "},
      {{"show", h5, "--file", "good.wav", "-o", kEvil + "/a.svg"}, 1, kShown + "/a.svg: "},
      {{"show", h5, "--file", "good.wav", "-o", h5}, 1, kShown + ".h5: this file is read"},
      {{"validate", yaml}, 0, "ok: "},
      {{"validate", yaml, "--set", "mel.n_mles=5"}, 78, "n_mles"},
      {{"init", kEvil + "_new.yaml"}, 0, kShown + "_new.yaml is written"},
      {{"init", yaml}, 1, kShown + ".yaml: this already exists"},
      {{"inspect", h5, kEvil}, 2, kShown},
      {{"run", yaml, "--workers", kEvil}, 2, kShown},
      {{"verify-parity", "--reference", "librosa", kEvil + ".wav"}, 1, kShown},
  };
  for (const Row& row : rows) {
    const Ended e = exits(row.code, melflow_in(folder, row.arguments));
    INFO(row.arguments.front() << ": " << e.code << "\n" << e.out << e.err);
    CHECK(has(e.out + e.err, row.part));
    CHECK(is_harmless(e.out));
    CHECK(is_harmless(e.err));
  }
}

TEST_CASE("printing: JSON is harmless, too, and has the names as they are") {
  const TempFolder folder;
  const std::string evil = kEvil.substr(0, kEvil.size() - 1);  // all of it is UTF-8
  test::write_clip(folder / "data/good.wav", 8000, 0.3, 1);
  test::write_text(folder / ("data/" + evil + ".wav"), "no sound");
  write_pipeline(folder);
  const Ended run = exits(3, melflow_in(folder, {"run", "p.yaml", "--json", "-q"}));
  CHECK(is_harmless(run.out));
  CHECK(nlohmann::json::parse(run.out)["remarks"][0]["path"] == evil + ".wav");
  const Ended inspect = melflow_in(folder, {"inspect", "out.h5", "--json", "--files"});
  CHECK(is_harmless(inspect.out));
  CHECK(nlohmann::json::parse(inspect.out)["remarks"][0]["path"] == evil + ".wav");
}

TEST_CASE("printing: what is advised about files that failed is what the outputs can do") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "data");
  test::write_wav(folder / "data/good.wav", 8000, 8000, 1);
  test::write_text(folder / "data/bad.wav", "no sound");
  struct Row {
    std::string sinks, advice;
  };
  const std::string rows = "  a: {stage: npy_write, from: mel, path: a.npy, overwrite: true}\n",
                    more = "  b: {stage: hdf5_write, from: mel, path: b.h5}\n",
                    sound = "  c: {stage: audio_write, from: decode, path: sound}\n",
                    none = "  d: {stage: discard, from: mel}\n";
  const std::string update = "; `melflow update p.yaml` then computes what has changed.\n",
                    again = ", and run it again, with overwrite: true.\n";
  for (const Row& row : {Row{rows, update},
                         {rows + more, update},
                         {sound + none, again},
                         {rows + sound, again},
                         {none, ", and run it again.\n"}}) {
    CAPTURE(row.sinks);
    std::filesystem::remove_all(folder / "sound");
    std::filesystem::remove(folder / "b.h5");
    test::write_text(
        folder / "p.yaml",
        test::nodes_to_mel("root: data", "sample_rate: 8000, n_fft: 256, hop: 100") + row.sinks);
    const Ended ended = exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
    CHECK(has(ended.err, "  Fix or exclude these files" + row.advice));
    CHECK(melflow_in(folder, {"update", "p.yaml", "-q"}).code == (row.advice == update ? 3 : 1));
  }
}

TEST_CASE(
    "printing: --quiet tells what failed, each reason once with the first files, and nothing of a "
    "good "
    "run") {
  const Toy folder(400);
  const Ended bad = exits(3, run(folder, {kToy, "run", "toy.yaml", "-q", "--set",
                                          "work.fail_every=4", "--set", "work.skip_every=10"}));
  CHECK(bad.out.empty());
  CHECK(bad.err.starts_with(
      "100 of 400 files failed, 20 were skipped, 280 are ok (written: toy.out):\n"
      "  100 files: work: failed: is broken (toy/0003, toy/0007, toy/0011, …)\n"
      "  (all with --json FILE)\n"));
  CHECK(
      bad.err.ends_with("  Fix or exclude these files; `melflow update toy.yaml --set "
                        "work.fail_every=4 --set work.skip_every=10` then computes what has "
                        "changed.\n"));
  CHECK(std::count(bad.err.begin(), bad.err.end(), '\n') == 4);
  const Ended good = exits(0, run(folder, {kToy, "run", "toy.yaml", "-q"}));
  CHECK(good.out + good.err == "");
}

TEST_CASE(
    "printing: warnings are printed with --quiet, stored in the output and shown by inspect") {
  const TempFolder folder;
  test::write_clip(folder / "data/a/a.wav", 8000, 0.3, 1);
  // 400 bands on 129 bins of the transform leave some of them empty.
  write_pipeline(folder);
  const std::string warning = "mel.n_mels: ";
  for (const std::string out : {"out.h5", "out.npy"}) {
    CAPTURE(out);
    std::vector<std::string> arguments{"run",   "p.yaml",           "-q", "--set", "mel.n_mels=400",
                                       "--set", "write.path=" + out};
    if (out == "out.npy") arguments.insert(arguments.end(), {"--set", "write.stage=npy_write"});
    const Ended e = exits(0, melflow_in(folder, arguments));
    CHECK(e.out.empty());
    REQUIRE(e.err.starts_with("warning: --set: " + warning));
    const std::string stored = e.err.substr(16, e.err.size() - 17);
    CHECK(has(melflow_in(folder, {"inspect", out}).out, "\nwarning       " + stored + "\n"));
    CHECK(nlohmann::json::parse(melflow_in(folder, {"inspect", out, "--json"}).out)["warnings"] ==
          nlohmann::json::array({stored}));
    arguments.emplace_back("--json");
    CHECK(nlohmann::json::parse(melflow_in(folder, arguments).out)["warnings"] ==
          nlohmann::json::array({"--set: " + stored}));
    // No warning for a run that had none.
    arguments[4] = "mel.n_mels=20";
    CHECK(melflow_in(folder, arguments).err.empty());
    CHECK(nlohmann::json::parse(melflow_in(folder, {"inspect", out, "--json"}).out)["warnings"] ==
          nlohmann::json::array());
  }
}

TEST_CASE(
    "printing: warnings about a run, which come during it, are treated as those on its plan") {
  const TempFolder folder;
  test::write_clip(folder / "data/a.wav", 8000, 0.3, 1);
  test::write_clip(folder / "data/b.wav", 8000, 0.3, 2);
  test::write_text(folder / "labels.csv", "path,label\na.wav,one\n");
  write_pipeline(folder);
  const Ended e = exits(0, melflow_in(folder, {"run", "p.yaml", "-q", "--set", "files.labels=file",
                                               "--set", "files.label_file=labels.csv"}));
  CHECK(e.err == "warning: labels.csv: 1 of 2 files have no label there (b.wav)\n");
  CHECK(has(melflow_in(folder, {"inspect", "out.h5"}).out,
            "\nwarning       labels.csv: 1 of 2 files have no label there (b.wav)\n"));
}

TEST_CASE("printing: a long argument is not told whole") {
  const TempFolder folder;
  write_pipeline(folder);
  const std::string longer(100'000, 'z');
  const std::vector<std::vector<std::string>> all = {
      {longer},
      {"stages", longer},
      {"run", longer},
      {"run", "p.yaml", "--workers", longer},
      {"run", "p.yaml", longer},
      {"run", "p.yaml", "--" + longer},
      {"run", "p.yaml", "--set", longer},
      {"run", "p.yaml", "--set", longer + "=1"},
      {"run", "p.yaml", "--set", "mel.n_mels=" + longer},
      {"run", "p.yaml", "--var", longer + "=1"},
      {"validate", "p.yaml", "--set", "mel.n_mels=" + std::string(100'000, '9')},
      {"inspect", longer},
      {"compare", longer, longer},
      {"show", "out.h5", "--file", longer, "-o", longer},
      {"init", longer},
  };
  for (const std::vector<std::string>& arguments : all) {
    const Ended e = melflow_in(folder, arguments);
    INFO(arguments.front().substr(0, 20)
         << " " << (arguments.size() > 2 ? arguments[2].substr(0, 20) : "") << ": " << e.code << " "
         << e.err.substr(0, 300));
    CHECK((e.code == 1 || e.code == 2 || e.code == 78));
    CHECK(e.out.empty());
    CHECK_FALSE(e.err.empty());
    CHECK(e.err.size() < 20'000);
  }
}

TEST_CASE("printing: run and inspect say the same of a file; inspect --files says it of all") {
  const TempFolder folder;
  test::write_clip(folder / "data/cut.wav", 8000, 1.0, 1);
  std::filesystem::resize_file(folder / "data/cut.wav", 44 + 8000);  // half of its samples
  for (int i = 0; i < 12; ++i)
    test::write_text(folder / fmt::format("data/x{:02}.wav", i), "no sound");
  write_pipeline(folder);
  const Ended made = exits(
      3, melflow_in(folder, {"run", "p.yaml", "--no-progress", "--set", "decode.truncated=keep"}));
  const std::string cut =
      "  cut.wav: decode: short: the header promises 16044 bytes, the file has 8044; 4000 samples "
      "(0.500 s) are there\n";
  const std::string few = melflow_in(folder, {"inspect", "out.h5"}).out;
  const std::string all = melflow_in(folder, {"inspect", "out.h5", "--files"}).out;
  for (const std::string& text : {few, all}) {
    INFO(text);
    CHECK(has(text, "\n  x08.wav: decode: failed: is not an audio file"));
  }
  CHECK(has(all, cut));  // listed after the failed files
  CHECK(has(made.out, "(begins with 'no sound') (x00.wav, x01.wav, x02.wav, …)\n" + cut));
  CHECK_FALSE(has(few, cut));
  CHECK_FALSE(has(few, "  x11.wav: "));
  CHECK(has(few, "  … and 3 more (all with --remarks)\n"));
  CHECK(has(all, "\n  x11.wav: decode: failed: is not an audio file"));
  CHECK_FALSE(has(all, " more (all with"));
}

}  // namespace melflow::test::printing_test
