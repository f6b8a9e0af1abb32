// Mean and standard deviation of an output's columns, and rows that are normalised by these.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/support/h5_reader.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/problems.h"
#include "tests/support/python.h"
#include "tests/support/small_pipeline.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::statistics_test {
namespace {

struct Options {
  std::string files = "splits: top_dir";
  std::string decode = "truncated: keep";
  std::string segment = "length: 256";
  std::string mel = "center: false";
  std::string write = "statistics: train";
  std::string between{};  ///< a node; "mel" for none
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
  for (unsigned i = 0; i < 2; ++i)  // several blocks of 64 KiB
    write_wav(folder.file(fmt::format("clips/{}/long.wav", i == 0 ? "train" : "test")), 90'000,
              kRate, 90 + i);
}

std::string said_of(const TempFolder& folder, const std::string& out, const std::string& of) {
  return python_says("jobs/read_statistics.py", fmt::format("'{}' {}", folder / out, of));
}

}  // namespace

TEST_CASE("statistics: those of numpy, of the training split or of all") {
  const Filled<make_split_corpus> folder;
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
    completed(run(row.options, folder, "out.h5"));
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

TEST_CASE("statistics: of the splits that are for training, wherever they stand") {
  const TempFolder folder;
  unsigned seed = 1;
  for (const char* split : {"dev-clean", "test", "train-clean-100", "train_other", "train_dev"})
    for (int i = 0; i < 4; ++i, ++seed)
      write_wav(folder.file(fmt::format("clips/{}/{}.wav", split, i)), 4000 + 500 * (seed % 5),
                kRate, seed);
  const std::string splits = "splits: top_dir, split_names: [dev-clean, test, train_dev, ";
  const std::string both = "train_other, train-clean-100";
  struct Row {
    const char* what;
    Options options;
    std::string of;
  };
  const Row rows[] = {
      {"in the order of their purpose", {}, "train-clean-100, train_other"},
      {"behind others", {.files = splits + both + "]"}, both},
      {"a file for each split",
       {.files = splits + both + "]", .write = "statistics: train, split_files: true"},
       both},
      {"one that is named",
       {.files = splits + both + "]", .write = "statistics: train, statistics_splits: train_dev"},
       "train_dev"},
      {"two that are named",
       {.write = "statistics: train, statistics_splits: [train_other, dev-clean]"},
       "train_other, dev-clean"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    completed(run(row.options, folder, "out.h5"));
    if (row.options.write.find("split_files") == std::string::npos) {
      CHECK(said_of(folder, "out.h5", "'" + row.of + "'") == "");
    } else {
      REQUIRE(run({.files = row.options.files}, folder, "one.h5").complete());
      CHECK(H5File(folder / "out.test.h5").raw("statistics/mean") ==
            H5File(folder / "one.h5").raw("statistics/mean"));
    }
  }
  // An update, which reads the sums again.
  write_wav(folder.file("clips/train_other/00.wav"), 9000, kRate, 70);
  REQUIRE(run({}, folder, "updated.h5").complete());
  write_wav(folder.file("clips/train_other/0.wav"), 7000, kRate, 71);
  write_wav(folder.file("clips/dev-clean/0.wav"), 7000, kRate, 72);
  REQUIRE(run({}, folder, "updated.h5", Update::append).complete());
  CHECK(said_of(folder, "updated.h5", "'train-clean-100, train_other'") == "");
}

TEST_CASE("statistics: no training split by its name is an error before anything is written") {
  const TempFolder folder;
  for (const char* split : {"dev-clean", "test-clean", "training_val"})
    write_wav(folder.file(fmt::format("clips/{}/0.wav", split)), 4000, kRate);
  const auto error = [&](const Options& options) {
    const JobResult job = run(options, folder, "out.h5");
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
    return job.error;
  };
  CHECK(
      error({}).ends_with("out.h5: statistics: train: which of the splits is for training? None is "
                          "called train, training, tr or trn, or begins so (train-clean-100); the "
                          "splits are dev-clean, training_val, test-clean. Name it, as in "
                          "statistics_splits: [dev-clean], or set statistics: all"));
  CHECK(error({.write = "statistics: train, statistics_splits: [dev-claen]"})
            .ends_with("out.h5: statistics_splits: no file is in the split 'dev-claen'. Did you "
                       "mean 'dev-clean'? The splits are dev-clean, training_val, test-clean"));
  CHECK(
      error({.files = "labels: none", .write = "statistics: train, statistics_splits: [train]"})
          .ends_with("out.h5: statistics_splits names train, but the corpus has no splits; remove "
                     "it for the statistics of all rows, or set splits of file_list"));
  // Rows that are not normalised need no statistics.
  CHECK(run({.write = "sync: false"}, folder, "out.h5").complete());
}

TEST_CASE("statistics: the same to the last bit for any workers, blocks, batches and feeds") {
  const Filled<make_split_corpus> folder;
  const auto read = [&](const std::string& out) {
    const H5File file(folder / out);
    return file.raw("statistics/mean") + file.raw("statistics/std");
  };
  struct Row {
    const char* what;
    std::string segment, mel, write;
  };
  const Row rows[] = {
      {"recordings", "tail: drop", "log: db", "statistics: all"},
      {"values that need the whole recording", "tail: drop", "log: db, top_db: 20",
       "statistics: train"},
      {"rows of 16 bits", "length: 256", "log: db", "statistics: train, dtype: float16"},
      {"several frames a row", "length: 1024", "center: false", "statistics: all"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    std::string first;
    // Every pair of two settings.
    unsigned turn = 0;
    for (const std::string feed : {"stream", "preload", "cache"})
      for (const int workers : {1, 2, 7}) {
        const char* block = turn++ % 2 == 0 ? "64KiB" : "8MiB";
        CAPTURE(feed);
        CAPTURE(workers);
        CAPTURE(std::string(block));
        Options options{.segment = row.segment, .mel = row.mel, .write = row.write};
        options.decode = fmt::format("block: {}", block);
        options.files += fmt::format(", feed: {}", feed);
        if (feed == "cache") options.files += ", cache_path: " + (folder / "cache");
        std::string yaml = pipeline(options);
        yaml.replace(yaml.find("files: 3"), 8, fmt::format("files: {}", 3 * workers));
        LoadOptions load;
        load.vars = {{"DATA", folder / "clips"}, {"OUT", folder / "out.h5"}};
        load.workers = workers;
        completed(run_job(yaml, load));
        if (first.empty()) first = read("out.h5");
        CHECK((read("out.h5") == first));
      }
    CHECK(!first.empty());
  }
}

TEST_CASE("statistics: an update comes to the same bits as a run over the same files") {
  for (const char* write : {"statistics: train", "statistics: all, dtype: float16",
                            "statistics: all, compression: deflate, dtype: bfloat16"}) {
    CAPTURE(std::string(write));
    const Filled<make_split_corpus> folder;
    const Options options{.decode = "block: 64KiB", .segment = "tail: drop", .write = write};
    REQUIRE(run(options, folder, "updated.h5").complete());
    write_wav(folder.file("clips/train/00_new.wav"), 9000, kRate, 70);
    write_wav(folder.file("clips/train/3.wav"), 7000, kRate, 71);
    std::filesystem::remove(folder / "clips/test/1.wav");
    std::filesystem::remove(folder / "clips/train/9.wav");
    for (const Update update : {Update::append, Update::compact}) {
      completed(run(options, folder, "updated.h5", update));
      REQUIRE(run(options, folder, "anew.h5").complete());
      const H5File updated(folder / "updated.h5"), anew(folder / "anew.h5");
      CHECK((updated.raw("statistics/mean") == anew.raw("statistics/mean")));
      CHECK((updated.raw("statistics/std") == anew.raw("statistics/std")));
      write_wav(folder.file("clips/train/zz_newer.wav"), 30'000, kRate, 72);
    }
  }
}

TEST_CASE("statistics: a file with rows that are not finite fails and spoils no other") {
  const Filled<make_split_corpus> folder;
  REQUIRE(run({.write = "statistics: all, normalize: true"}, folder, "clean.h5").complete());
  // One bit of an exponent; in the long file it comes long after the first block.
  std::vector<float> samples = test_signal(90'000);
  samples[80'000] = 1e20F;
  write_audio(folder.file("clips/train/a_long.wav"), audio_kind("wav float"), kRate, samples);
  samples.resize(8000);
  samples[4321] = -1e25F;
  write_audio(folder.file("clips/test/b.wav"), audio_kind("wav float"), kRate, samples);
  samples[4321] = 250;  // far beyond full scale, but a valid number
  write_audio(folder.file("clips/test/c_loud.wav"), audio_kind("wav float"), kRate, samples);
  struct Row {
    const char* what;
    Options options;
  };
  const Row rows[] = {
      {"power", {}},
      {"spectrogram", {.mel = "output: spectrogram"}},
      {"levels", {.mel = "log: db"}},
      {"in blocks", {.decode = "block: 64KiB", .segment = "tail: drop", .mel = "log: db"}},
      {"in blocks, finished later",
       {.decode = "block: 64KiB",
        .segment = "tail: drop",
        .mel = "log: ln, top_db: 30, normalize: per_feature"}},
      {"cepstra and derivatives",
       {.decode = "block: 64KiB",
        .segment = "tail: drop",
        .mel = "log: db, use_energy: true",
        .between = "stage: mfcc, n_mfcc: 13"}},
      {"derivatives",
       {.decode = "block: 64KiB", .segment = "tail: drop", .between = "stage: deltas"}},
  };
  for (Row row : rows) {
    CAPTURE(std::string(row.what));
    row.options.write = "statistics: all, normalize: true";
    const JobResult job = completed(run(row.options, folder, "out.h5"));
    const auto remarks = job.remarks_by_name();
    CHECK(remarks.size() == 4);
    CHECK(remarks.at("test/c_loud.wav").find("samples up to 250; full scale is 1") !=
          std::string::npos);
    // Which row comes first depends on timing.
    const std::string& a = remarks.at("train/a_long.wav");
    CHECK_MESSAGE(a.starts_with("failed: mel: row "), a);
    CHECK_MESSAGE(a.ends_with(" is not finite: sample 80000 (at 10.000 s) is 1e+20"), a);
    const std::string& b = remarks.at("test/b.wav");
    CHECK_MESSAGE(b.ends_with(" is not finite: sample 4321 (at 0.540 s) is -1e+25"), b);
    const Output out = read_output(folder / "out.h5");
    CHECK(out.file("test/c_loud.wav").count > 0);
    CHECK(out.file("train/a_long.wav").count == 0);
    CHECK(std::all_of(out.mel.begin(), out.mel.end(), [](float v) { return std::isfinite(v); }));
    for (const char* name : {"statistics/mean", "statistics/std"})
      for (const double value : H5File(folder / "out.h5").doubles(name))
        CHECK(std::isfinite(value));
  }
  std::filesystem::remove(folder / "clips/test/c_loud.wav");
  // Settings can be as extreme as samples: then rows of 16-bit files are checked, too.
  for (const char* mel : {"input_scale: 1e9, power: 8", "power_offset: 1e38, power: 4",
                          "normalize: fixed, norm_mean: [1e30], norm_std: [1e-20]"}) {
    const JobResult job = run({.mel = mel, .write = "statistics: all"}, folder, "none.h5");
    CHECK(job.error.starts_with("all files failed ("));
    const std::string said = job.remarks_by_name().at("train/0.wav");
    CHECK_MESSAGE(said.starts_with("failed: mel: row 0 is not finite: sample "), said);
  }
  REQUIRE(run({.write = "statistics: all, normalize: true"}, folder, "out.h5").complete());
  const H5File clean(folder / "clean.h5"), out(folder / "out.h5");
  CHECK((clean.raw("mel") == out.raw("mel")));
  CHECK((clean.raw("statistics/mean") == out.raw("statistics/mean")));
  CHECK((clean.raw("statistics/std") == out.raw("statistics/std")));
}

TEST_CASE("statistics: an update refuses an output with rows that are not finite, and leaves it") {
  const Filled<make_split_corpus> folder;
  const Options options{.write = "statistics: all"};
  REQUIRE(run(options, folder, "out.h5").complete());
  // Rows begin at an offset that can be mapped, as docs/output-format.md says.
  std::string bytes = read_bytes(folder / "out.h5");
  const auto at = static_cast<std::size_t>(H5File(folder / "out.h5").offset("mel"));
  const float inf = HUGE_VALF;
  std::memcpy(bytes.data() + at + 400, &inf, sizeof inf);
  folder.write("out.h5", bytes);
  const JobResult job = run(options, folder, "out.h5", Update::append);
  CHECK(job.report.ending == Ending::failed);
  CHECK_MESSAGE(job.error.find("rows of train/0.wav are not finite (earlier versions kept such "
                               "rows); rebuild it (overwrite: true)") != std::string::npos,
                job.error);
  CHECK((read_bytes(folder / "out.h5") == bytes));
}

TEST_CASE("statistics: a file with values that the output's type cannot hold fails") {
  const TempFolder folder;
  for (const char* name : {"a", "b"})
    write_wav(folder.file(fmt::format("clips/train/{}.wav", name)), 90'000, kRate, 5);
  std::vector<float> quiet = test_signal(90'000);
  for (float& v : quiet) v *= 1e-5F;
  write_audio(folder.file("clips/train/quiet.wav"), audio_kind("wav float"), kRate, quiet);
  for (const char* between :
       {"", "stage: deltas"}) {  // these are finished when all blocks have arrived
    CAPTURE(std::string(between));
    const JobResult job = completed(run({.decode = "block: 64KiB",
                                         .segment = "tail: drop",
                                         .mel = "input_scale: 32768",
                                         .write = "statistics: all, dtype: float16",
                                         .between = between},
                                        folder, "out.h5"));
    const auto remarks = job.remarks_by_name();
    CHECK(remarks.size() == 2);
    for (const char* name : {"train/a.wav", "train/b.wav"}) {
      const std::string& said = remarks.at(name);
      // Every row is too large; which block is checked first depends on timing.
      CHECK_MESSAGE(said.starts_with("failed: write: row "), said);
      CHECK_MESSAGE(said.ends_with(", float16 ends at 65504: store another dtype, or logarithms"),
                    said);
    }
    const Output out = read_output(folder / "out.h5");
    CHECK(out.rows() == static_cast<std::uint64_t>(out.file("train/quiet.wav").count));
    CHECK(out.rows() > 100);
    CHECK(said_of(folder, "out.h5", "all") == "");
  }
}

TEST_CASE(
    "statistics: files that fail in another branch, or come with an update, are accounted for") {
  const Filled<make_split_corpus> folder;
  REQUIRE(run({}, folder, "out.h5").complete());
  write_wav(folder.file("clips/train/new.wav"), 9000, kRate, 70);
  completed(run({}, folder, "out.h5", Update::append));
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
  const Filled<make_split_corpus> folder;
  // The first file, which is long and turns out to be truncated when the others are done.
  write_wav(folder.file("scratch.wav"), 3'000'000, kRate, 60);
  copy_truncated(folder / "scratch.wav", folder / "clips/train/0.wav", 5'900'000);
  CHECK(completed(run({.decode = "block: 64KiB, truncated: fail"}, folder, "out.h5"))
            .report.counts.failed == 2);
  CHECK(said_of(folder, "out.h5", "train") == "");
}

TEST_CASE("normalize: rows of every split have the training split's statistics taken out") {
  const Filled<make_split_corpus> folder;
  REQUIRE(run({}, folder, "raw.h5").complete());
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    CAPTURE(std::string(type));
    const std::string write = fmt::format("statistics: train, normalize: true, dtype: {}", type);
    completed(run({.write = write}, folder, "out.h5"));
    REQUIRE(run({.write = fmt::format("statistics: train, dtype: {}", type)}, folder, "stored.h5")
                .complete());
    CHECK(
        python_says("jobs/read_statistics.py", fmt::format("'{}' train '{}' {}", folder / "out.h5",
                                                           folder / "stored.h5", type)) == "");
  }
  const Output raw = read_output(folder / "raw.h5"), out = read_output(folder / "out.h5");
  CHECK(raw.texts.at("feature_fingerprint") != out.texts.at("feature_fingerprint"));

  // Computed by a later run: the same values.
  REQUIRE(run({.write = "statistics: train, normalize: true"}, folder, "same.h5").complete());
  const JobResult later =
      completed(run({.write = "sync: false",
                     .between = fmt::format("stage: normalize, file: '{}'", folder / "raw.h5")},
                    folder, "later.h5"));
  CHECK(read_output(folder / "later.h5").mel_bytes == read_output(folder / "same.h5").mel_bytes);
  CHECK(read_output(folder / "later.h5").unit == "standard deviations of power");
  CHECK(read_output(folder / "same.h5").unit == "standard deviations of power");
}

TEST_CASE("normalize: what cannot be is said before the run, or before anything is touched") {
  const Filled<make_split_corpus> folder;
  REQUIRE(run({}, folder, "raw.h5").complete());
  REQUIRE(run({.write = "sync: false"}, folder, "none.h5").complete());
  REQUIRE(run({.write = "statistics: all, normalize: true"}, folder, "done.h5").complete());
  const auto problem = [&](const Options& options) {
    return problems_in([&] { return run(options, folder, "out.h5"); });
  };
  const auto by = [&](const std::string& file, const std::string& mel = "center: false") {
    return problem({.mel = mel, .between = fmt::format("stage: normalize, file: '{}'", file)});
  };
  CHECK(problem({.write = "normalize: true"}).find("none are computed; set statistics: train") !=
        std::string::npos);
  CHECK(problem({.write = "statistics: all, statistics_splits: [train]"})
            .find("names the splits of statistics: train; set that, or remove it") !=
        std::string::npos);
  CHECK(problem({.write = "statistics: all, normalize: true, compression: deflate"})
            .find("takes rows in one piece") != std::string::npos);
  CHECK(by("").find("'file' is missing; write file: OUTPUT, whose statistics are used") !=
        std::string::npos);
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

}  // namespace melflow::test::statistics_test
