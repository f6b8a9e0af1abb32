// Mean and standard deviation of an output's columns, and rows that are normalised by them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "tests/support/h5_reader.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/python.h"
#include "tests/support/small_pipeline.h"
#include "tests/support/temp_folder.h"

using namespace melflow;
using namespace melflow::test;

namespace {

struct Options {
  std::string files = "splits: top_dir";
  std::string decode = "truncated: keep";
  std::string segment = "length: 256";
  std::string mel = "center: false";
  std::string write = "statistics: train";
  std::string between{};  ///< a node, "mel" where there is none
  std::string sink = "hdf5_write";
};

std::string pipeline(const Options& o) {
  return fmt::format(R"(version: 1
graph:
{}{}  write: {{stage: {}, from: {}, path: "${{OUT}}", overwrite: true, {}}}
)",
                     nodes_to_mel(o.files, o.decode, o.segment, o.mel),
                     o.between.empty() ? "" : "  between: {from: mel, " + o.between + "}\n", o.sink,
                     o.between.empty() ? "mel" : "between", o.write);
}

JobResult run(const Options& options, const TempFolder& folder, const std::string& out,
              Update update = Update::none) {
  LoadOptions load;
  load.vars = {{"DATA", folder / "clips"}, {"OUT", folder / out}};
  return run_job(pipeline(options), load, {}, update);
}

void make_split_corpus(const TempFolder& folder) {
  unsigned seed = 1;
  for (const char* split : {"train", "test"})
    for (int i = 0; i < 12; ++i, ++seed)
      write_wav(folder.file(fmt::format("clips/{}/{}.wav", split, i)), 4000 + 500 * (seed % 5),
                kRate, seed);
  folder.write("clips/train/bad.wav", "no sound");
  for (unsigned i = 0; i < 2; ++i)  // in several blocks of 64 KiB
    write_wav(folder.file(fmt::format("clips/{}/long.wav", i == 0 ? "train" : "test")), 90'000,
              kRate, 90 + i);
}

std::string said_of(const TempFolder& folder, const std::string& out, const std::string& of) {
  return python_says("jobs/read_statistics.py", fmt::format("'{}' {}", folder / out, of));
}

}  // namespace

TEST_CASE("statistics: those of numpy, of the training split or of all") {
  const TempFolder folder;
  make_split_corpus(folder);
  struct Row {
    const char* what;
    Options options;
    std::string of;
  };
  const Row rows[] = {
      {"training", {}, "train"},
      {"all", {.write = "statistics: all"}, "all"},
      {"no splits", {.files = "labels: none"}, "all"},
      {"several frames a row", {.segment = "length: 1024"}, "train"},
      {"recordings in blocks",
       {.decode = "block: 64KiB", .segment = "tail: drop", .mel = "log: db"},
       "train"},
      {"values that need the whole recording",
       {.decode = "block: 64KiB", .segment = "tail: drop", .mel = "log: db, top_db: 20"},
       "train"},
      {"compressed", {.write = "statistics: train, compression: deflate"}, "train"},
      {"a file for each split", {.write = "statistics: train, split_files: true"}, "train"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const JobResult job = run(row.options, folder, "out.h5");
    REQUIRE_MESSAGE(job.complete(), job.text());
    const bool is_split = row.options.write.find("split_files") != std::string::npos;
    CHECK(said_of(folder, is_split ? "out.train.h5" : "out.h5", row.of) == "");
    if (is_split) {
      CHECK(H5File(folder / "out.train.h5").raw("statistics/mean") ==
            H5File(folder / "out.test.h5").raw("statistics/mean"));
    }
  }
  REQUIRE(run({.write = "statistics: train, split_files: false", .sink = "npy_write"}, folder,
              "out.npy")
              .complete());
  CHECK(said_of(folder, "out.npy", "train") == "");
  REQUIRE(run({.write = "sync: false"}, folder, "none.h5").complete());
  CHECK_FALSE(H5File(folder / "none.h5").has("statistics"));
}

TEST_CASE("statistics: the same to the last bit for any concurrency, queue and batch") {
  const TempFolder folder;
  make_split_corpus(folder);
  REQUIRE(run({}, folder, "first.h5").complete());
  const H5File first(folder / "first.h5");
  for (const int batch : {1, 5, 30}) {
    std::string yaml = pipeline({});
    yaml.replace(yaml.find("files: 3"), 8, fmt::format("files: {}", batch));
    LoadOptions load;
    load.vars = {{"DATA", folder / "clips"}, {"OUT", folder / "out.h5"}};
    load.workers = batch;
    REQUIRE(run_job(yaml, load).complete());
    const H5File out(folder / "out.h5");
    CHECK(out.raw("statistics/mean") == first.raw("statistics/mean"));
    CHECK(out.raw("statistics/std") == first.raw("statistics/std"));
  }
}

TEST_CASE(
    "statistics: files that fail in another branch, or come with an update, are accounted for") {
  const TempFolder folder;
  make_split_corpus(folder);
  REQUIRE(run({}, folder, "out.h5").complete());
  write_wav(folder.file("clips/train/new.wav"), 9000, kRate, 70);
  const JobResult job = run({}, folder, "out.h5", Update::append);
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(said_of(folder, "out.h5", "train") == "");
  REQUIRE(
      run({.write = "compression: deflate, statistics: train"}, folder, "packed.h5").complete());
  write_wav(folder.file("clips/train/newer.wav"), 9000, kRate, 71);
  REQUIRE(
      run({.write = "compression: deflate, statistics: train"}, folder, "packed.h5", Update::append)
          .complete());
  CHECK(said_of(folder, "packed.h5", "train") == "");
}

TEST_CASE("statistics: files that waited for one that failed count as all others") {
  const TempFolder folder;
  make_split_corpus(folder);
  // The first of all, long, and found to be cut off when the others are done.
  write_wav(folder.file("scratch.wav"), 3'000'000, kRate, 60);
  copy_truncated(folder / "scratch.wav", folder / "clips/train/0.wav", 5'900'000);
  const JobResult job = run({.decode = "block: 64KiB, truncated: fail"}, folder, "out.h5");
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.failed == 2);
  CHECK(said_of(folder, "out.h5", "train") == "");
}

TEST_CASE("normalize: rows of every split have the training split's statistics taken out") {
  const TempFolder folder;
  make_split_corpus(folder);
  REQUIRE(run({}, folder, "raw.h5").complete());
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    CAPTURE(std::string(type));
    const std::string write = fmt::format("statistics: train, normalize: true, dtype: {}", type);
    const JobResult job = run({.write = write}, folder, "out.h5");
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(python_says("jobs/read_statistics.py",
                      fmt::format("'{}' train '{}' {}", folder / "out.h5", folder / "raw.h5",
                                  type)) == "");
  }
  const Output raw = read_output(folder / "raw.h5"), out = read_output(folder / "out.h5");
  CHECK(raw.texts.at("feature_hash") != out.texts.at("feature_hash"));

  // By a later run: the same values.
  REQUIRE(run({.write = "statistics: train, normalize: true"}, folder, "same.h5").complete());
  const JobResult later =
      run({.write = "sync: false",
           .between = fmt::format("stage: normalize, file: '{}'", folder / "raw.h5")},
          folder, "later.h5");
  REQUIRE_MESSAGE(later.complete(), later.text());
  CHECK(read_output(folder / "later.h5").mel_bytes == read_output(folder / "same.h5").mel_bytes);
  CHECK(read_output(folder / "later.h5").unit == "standard deviations of power");
  CHECK(read_output(folder / "same.h5").unit == "standard deviations of power");
}

TEST_CASE("normalize: what cannot be is said before the run, or before anything is touched") {
  const TempFolder folder;
  make_split_corpus(folder);
  REQUIRE(run({}, folder, "raw.h5").complete());
  REQUIRE(run({.write = "sync: false"}, folder, "none.h5").complete());
  REQUIRE(run({.write = "statistics: all, normalize: true"}, folder, "done.h5").complete());
  const auto problem = [&](const Options& options) {
    try {
      run(options, folder, "out.h5");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto by = [&](const std::string& file, const std::string& mel = "center: false") {
    return problem({.mel = mel, .between = fmt::format("stage: normalize, file: '{}'", file)});
  };
  CHECK(problem({.write = "normalize: true"}).find("by which statistics? Set statistics: train") !=
        std::string::npos);
  CHECK(problem({.write = "statistics: all, normalize: true, compression: deflate"})
            .find("takes rows in one piece") != std::string::npos);
  CHECK(by("").find("'file' is missing: whose statistics?") != std::string::npos);
  CHECK(by(folder / "gone.h5").find("gone.h5") != std::string::npos);
  CHECK(by(folder / "none.h5").find("none.h5 has no statistics") != std::string::npos);
  CHECK(by(folder / "done.h5").find("done.h5 is normalised already") != std::string::npos);
  CHECK(problem({.mel = "center: false, output: spectrogram",
                 .between = fmt::format("stage: normalize, file: '{}'", folder / "raw.h5")})
            .find("raw.h5 has 20 columns, what arrives has 129") != std::string::npos);
  const std::string before = read_bytes(folder / "done.h5");
  CHECK(run({.write = "statistics: all, normalize: true"}, folder, "done.h5", Update::append)
            .error.find("its rows are normalised by statistics that new files would change") !=
        std::string::npos);
  CHECK(read_bytes(folder / "done.h5") == before);
}
