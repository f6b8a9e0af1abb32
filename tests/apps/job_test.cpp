// melflow plan, work, merge, status: any machines' output equals that of a single machine.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"

namespace melflow::test::job_test {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr int kFiles = 30;

// Recordings of three labels; some are no sound, or shorter than a window.
void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string path = fmt::format("data/{}/{:02}.wav", "abc"[i % 3], i);
    fs::create_directories(fs::path(folder / path).parent_path());
    if (i % 7 == 5)
      write_text(folder / path, "no sound");
    else
      test::write_wav(folder / path, i % 11 == 4 ? 20 : 1500 + 170 * i, 8000, i);
  }
}

// Tables that some pipelines read for these recordings.
void write_tables(const TempFolder& folder) {
  std::string table = "path,tags,level,speaker,split\n", spans = "path,start,end\n";
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string path = fmt::format("{}/{:02}.wav", "abc"[i % 3], i);
    table += fmt::format("{},{},{},{},{}\n", path, i % 4 == 0 ? "x|y" : "y",
                         i % 5 == 0 ? "" : std::to_string(0.1 * i),
                         i % 2 == 0 ? "ann" : "bo\xC3\xA9", i % 3 == 0 ? "train" : "test");
    spans += fmt::format("{0},0.01,0.1\n{0},0.05,0.12\n", path);
  }
  write_text(folder / "data/table.csv", table);
  write_text(folder / "data/spans.csv", spans);
}

struct Kind {
  const char* what;
  std::string files = "labels: top_dir";
  std::string write = "hdf5_write, path: out.h5";
  std::string mel = "";
};

std::string pipeline(const Kind& kind) {
  return test::nodes_to_mel("root: data, " + kind.files,
                            "sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20" + kind.mel) +
         "  write: {from: mel, stage: " + kind.write + "}\n";
}

std::map<std::string, std::string> outputs(const TempFolder& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (const std::string name = entry.path().filename(); name.starts_with("out"))
      out[name] = test::read_text(entry.path());
  return out;
}

// Returns the output of one machine, which is then removed.
std::map<std::string, std::string> made_by_one(const TempFolder& folder, int code = 3) {
  exits(code, melflow_in(folder, {"run", "p.yaml", "-q"}));
  auto out = outputs(folder);
  for (const auto& [name, bytes] : out) fs::remove(folder / name);
  return out;
}

void plan(const TempFolder& folder, const std::string& part = "20KiB") {
  exits(0, melflow_in(folder, {"plan", "p.yaml", "--part", part, "-o", "job"}));
}

void work(const TempFolder& folder, int code = 0) {
  exits(code, melflow_in(folder, {"work", "job", "-q"}));
}

}  // namespace

TEST_CASE("job: the merged output has the bytes of one machine's, in every kind of output") {
  const std::string splits = ", splits: ratio, split_ratios: {train: 60, valid: 20, test: 20}";
  const Kind kinds[] = {
      {.what = "plain", .mel = ""},
      {.what = "statistics of two splits that are for training, behind another",
       .files = "splits: ratio, split_ratios: {dev: 20, train_b: 40, test: 10, train-a: 30}",
       .write = "hdf5_write, path: out.h5, statistics: train"},
      {.what = "splits and statistics of the one for training",
       .files = "labels: top_dir" + splits,
       .write = "hdf5_write, path: out.h5, statistics: train"},
      {.what = "a file a split, statistics of all",
       .files = "labels: top_dir" + splits,
       .write = "hdf5_write, path: out.h5, statistics: all, split_files: true"},
      {.what = "normalised", .write = "hdf5_write, path: out.h5, statistics: all, normalize: true"},
      {.what = "float16", .write = "hdf5_write, path: out.h5, dtype: float16, statistics: all"},
      {.what = "compressed",
       .write = "hdf5_write, path: out.h5, compression: deflate, chunk: 4KiB"},
      {.what = "npy", .write = "npy_write, path: out.npy, statistics: all"},
      {.what = "npy, a file a split",
       .files = "labels: top_dir" + splits,
       .write = "npy_write, path: out.npy"},
      {.what = "kaldi", .write = "kaldi_write, path: out.ark, statistics: all, normalize: true"},
      {.what = "tar, shards of each split",
       .files = "labels: top_dir" + splits,
       .write = "tar_write, path: \"out-{0..2}.tar\""},
      {.what = "values that need the whole recording", .mel = ", log: db, ref: max, top_db: 80"},
      {.what = "dither, which is drawn for each file", .mel = ", dither: 1"},
      {.what = "a feed that is not used", .files = "feed: preload"},
      {.what = "hashes of contents", .files = "update_by: content"},
      {.what = "several labels, targets and texts of a table",
       .files = "manifest: data/table.csv, labels: manifest, columns_are: {label: tags}, "
                "label_separator: \"|\", targets: [level], columns: [speaker], splits: manifest"},
      {.what = "utterances, some of which overlap",
       .files = "manifest: data/spans.csv, utterances: {unit: seconds}"},
  };
  for (const Kind& kind : kinds) {
    CAPTURE(kind.what);
    const Filled<make_corpus> folder;
    write_tables(folder);
    write_text(folder / "p.yaml", pipeline(kind));
    const auto expected = made_by_one(folder);
    plan(folder);
    work(folder);
    exits(3, melflow_in(folder, {"merge", "job", "-q"}));
    const auto found = outputs(folder);
    CHECK(found.size() == expected.size());
    for (const auto& output : expected)
      CHECK_MESSAGE((found.contains(output.first) && found.at(output.first) == output.second),
                    output.first);
  }
}

TEST_CASE(
    "job: a part may have no file that is ok, and a job only such parts as one run may have") {
  const Filled<make_corpus> folder;
  write_text(folder / "p.yaml", pipeline({.what = "", .mel = ""}));
  const auto expected = made_by_one(folder);
  plan(folder, "1");  // one file per part
  work(folder);
  const Ended planned = exits(0, melflow_in(folder, {"merge", "job", "--dry-run"}));
  CHECK(has(planned.out, "out.h5: "));
  CHECK(has(planned.out, " files to copy, 0 to compute\na new output would be made\n"));
  CHECK(has(exits(0, melflow_in(folder, {"merge", "job", "--dry-run", "--json"})).out,
            "\"dry_run\": true"));
  CHECK_FALSE(fs::exists(folder / "out.h5"));
  CHECK(melflow_in(folder, {"merge", "job", "-q"}).code == 3);
  CHECK((outputs(folder) == expected));
  CHECK(has(melflow_in(folder, {"merge", "job"}).err,
            "exists already; remove it, or write elsewhere: `melflow merge JOB -o FILE`\n"));

  const TempFolder bad;
  fs::create_directories(bad / "data");
  for (const char* name : {"data/a.wav", "data/b.wav"}) write_text(bad / name, "no sound");
  write_text(bad / "p.yaml", pipeline({.what = "", .files = "labels: none", .mel = ""}));
  plan(bad, "1");
  work(bad);
  CHECK(has(exits(1, melflow_in(bad, {"merge", "job"})).err, "all files failed (2)"));
}

TEST_CASE("job: merge says what failed and what is ok with a warning, with -q, too") {
  const Filled<make_corpus> folder;
  const std::string whole = test::read_text(folder / "data/a/00.wav");
  write_text(folder / "data/a/00.wav", whole.substr(0, whole.size() * 19 / 20));
  write_text(folder / "p.yaml", pipeline({.what = "", .mel = ""}));
  plan(folder);
  work(folder);
  const Ended quiet = melflow_in(folder, {"merge", "job", "-q"});
  CHECK(quiet.out == "");
  CHECK(has(quiet.err, " files failed, "));
  CHECK(has(quiet.err, "\n1 of "));
  CHECK(has(quiet.err, " files is ok with a warning, such as a/00.wav: decode: short: "));
  CHECK(has(quiet.err, "; `melflow inspect "));
  fs::remove(folder / "out.h5");
  CHECK(has(melflow_in(folder, {"merge", "job"}).out, ", 1 ok with a warning; of "));
}

TEST_CASE("job: merge writes elsewhere with -o, as `run` does with another path") {
  const Filled<make_corpus> folder;
  write_text(folder / "p.yaml", pipeline({.what = "", .mel = ""}));
  const std::string other = folder / "out $x.h5";
  exits(3, melflow_in(folder,
                      {"run", "p.yaml", "-q", "--set", "write.path=" + (folder / "out $$x.h5")}));
  const auto expected = outputs(folder);
  REQUIRE(expected.contains("out $x.h5"));
  fs::remove(other);
  plan(folder);
  work(folder);
  CHECK(has(exits(3, melflow_in(folder, {"merge", "job", "-o", "out $x.h5"})).out, "out $x.h5: "));
  CHECK((outputs(folder) == expected));
}

TEST_CASE("job: it is of its folder and its variables, wherever workers begin") {
  const Filled<make_corpus> folder;
  write_text(folder / "p.yaml",
             test::nodes_to_mel("root: \"${WHERE}\"",
                                "sample_rate: 8000, n_fft: \"${FFT:-256}\", hop: 80, n_mels: 20") +
                 "  write: {from: mel, stage: hdf5_write, path: out.h5}\n");
  const test::Process::Variables set{{"WHERE", "data"}};
  exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}, set));
  const auto expected = outputs(folder);
  fs::remove(folder / "out.h5");
  REQUIRE(melflow_in(folder, {"plan", "p.yaml", "--part", "30KiB", "-o", "job"}, set).code == 0);
  fs::remove(folder / "p.yaml");
  const TempFolder elsewhere;
  CHECK(melflow_in(elsewhere, {"work", folder / "job", "-q"}, {{"FFT", "512"}}).code == 0);
  CHECK(has(exits(1, melflow_in(elsewhere, {"merge", folder / "job", "-q"})).err,
            "out.h5 is neither below the current folder nor below that of the job"));
  exits(3, melflow_in(elsewhere, {"merge", folder / "job", "-q", "--trust"}));
  CHECK((outputs(folder) == expected));
}

}  // namespace melflow::test::job_test
