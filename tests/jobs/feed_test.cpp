// Where samples come from does not change what is made of them: every feed gives the same rows and
// says the same about every file.
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <thread>

#include "stages/uring_engine.h"
#include "tests/jobs/shared.h"

using namespace melflow;
using namespace melflow::test;

namespace {

// Clips of many kinds and rates, two that take several blocks, and some that leave no rows or have a
// remark.
void make_corpus(const TempFolder& folder) {
  std::mt19937 random(11);
  const char* kinds[] = {"wav s16", "wav float", "flac s16", "mp3", "wav s16 stereo"};
  for (unsigned i = 0; i < 25; ++i) {
    const auto frames = static_cast<std::int64_t>(random() % 30000 + 200);
    const int rate = i % 3 == 0 ? 8000 : i % 3 == 1 ? 16000 : 44100;
    const AudioKind& kind = audio_kind(kinds[i % 5]);
    const bool is_long = i == 11 || i == 12;
    write_audio(
        folder.file("clips/" + std::to_string(i % 4) + "/" + std::to_string(i) + "." + kind.ending),
        kind, rate, test_signal(is_long ? 600000 : frames, kind.channels, i + 1));
  }
  folder.write("clips/1/bad.wav", "this is not sound");
  folder.write("clips/2/empty.wav", "");
  write_wav(folder.file("clips/3/short.wav"), 3);
  write_wav(folder.file("clips/3/whole.wav"), 9000);
  copy_truncated(folder / "clips/3/whole.wav", folder / "clips/3/cut.wav", -4000);
}

std::string with_feed(const std::string& yaml, const std::string& feed) {
  std::string out = yaml;
  const std::string before = "labels: parent_dir";
  out.insert(out.find(before) + before.size(), ", " + feed);
  return out;
}

struct Ran {
  JobResult job;
  Output output;
};

Ran run_feed(const TempFolder& folder, const std::string& feed, const Knobs& knobs = {},
             const std::string& segment = ", length: 4000, hop: 1500, tail: pad",
             const std::string& mel = "") {
  const std::string out = folder / "out.h5";
  std::filesystem::remove(out);
  Ran r;
  const std::string yaml = speech_pipeline(knobs, segment, mel);
  r.job = run_job(feed.empty() ? yaml : with_feed(yaml, feed), in_out(folder / "clips", out));
  if (r.job.complete()) r.output = read_output(out);
  return r;
}

// Rows, index and remarks.
void check_same(const Ran& expected, const Ran& other) {
  REQUIRE_MESSAGE(other.job.complete(), other.job.text());
  CHECK(expected.output.difference(other.output) == "");
  CHECK(expected.output.files == other.output.files);
  CHECK(expected.job.remarks_by_name() == other.job.remarks_by_name());
  const auto &a = expected.job.report.counts, &b = other.job.report.counts;
  CHECK(a.ok == b.ok);
  CHECK(a.failed == b.failed);
  CHECK(a.warned == b.warned);
}

std::vector<Knobs> ways_to_run() {
  std::vector<Knobs> out{
      {},
      {.concurrency = 1,
       .queue = 1,
       .batch = 1,
       .memory = "64MiB",
       .block = "64KiB",
       .whole = "4KiB",
       .workers = 1},
      {.concurrency = 3, .queue = 2, .batch = 5, .block = "100KiB", .engine = "threads"}};
  if (uring_refusal().empty())
    out.push_back({.concurrency = 4, .batch = 3, .block = "333KiB", .engine = "io_uring"});
  return out;
}

std::string figure(const JobResult& job, const std::string& name) {
  for (const auto& [key, value] : job.stage("files").summary)
    if (key == name) return value.text();
  return "";
}
std::size_t number(const JobResult& job, const std::string& name) {
  const std::string text = figure(job, name);
  return text.empty() ? 0 : std::stoul(text);
}

}  // namespace

TEST_CASE("feed: stream puts no node into the graph") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 8000);
  const Ran plain = run_feed(folder, ""), stream = run_feed(folder, "feed: stream");
  check_same(plain, stream);
  CHECK(plain.job.report.stages.size() == stream.job.report.stages.size());
  const Ran preload = run_feed(folder, "feed: preload");
  REQUIRE(preload.job.report.stages.size() == plain.job.report.stages.size() + 1);
  CHECK(preload.job.stage("files.keep").stage == "keep_audio");
  CHECK(plain.output.texts.at("feature_hash") == preload.output.texts.at("feature_hash"));
}

TEST_CASE("feed: preload makes the rows of stream, however the work is spread") {
  const TempFolder folder;
  make_corpus(folder);
  for (const char* segment : {"", ", length: 4000, hop: 1500, tail: pad"}) {
    CAPTURE(segment);
    const Ran expected = run_feed(folder, "", {}, segment);
    REQUIRE_MESSAGE(expected.job.complete(), expected.job.text());
    CHECK(expected.job.report.counts.warned == 1);
    CHECK(expected.job.report.counts.failed >= 2);
    for (const Knobs& knobs : ways_to_run()) {
      CAPTURE(knobs.text());
      const Ran other = run_feed(folder, "feed: preload, preload_overflow: stream", knobs, segment);
      check_same(expected, other);
      CHECK(other.job.report.filling_seconds > 0);
      CHECK(number(other.job, "preloaded_files") > 0);
      CHECK(other.job.report.memory_peak <= other.job.report.memory_budget);
    }
  }
}

TEST_CASE("feed: preload reads nothing in the run proper") {
  const TempFolder folder;
  make_corpus(folder);
  std::filesystem::remove_all(folder / "clips/1");  // those with nothing but good files stay
  std::filesystem::remove(folder / "clips/2/empty.wav");
  std::filesystem::remove(folder / "clips/3/cut.wav");
  const Ran r = run_feed(folder, "feed: preload");
  REQUIRE_MESSAGE(r.job.complete(), r.job.text());
  CHECK(r.job.stage("read").bytes_out == 0);
  CHECK(r.job.report.counts.ok == 21);
  CHECK(number(r.job, "preloaded_files") == 21);
}

TEST_CASE("feed: preload that does not fit is refused, or streams the rest") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)  // 1 MB each
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 500'000, 16000, i + 1);
  const Knobs tight{.concurrency = 1, .queue = 1, .memory = "48MiB", .block = "64KiB", .workers = 1};
  const Ran expected = run_feed(folder, "", tight);
  REQUIRE_MESSAGE(expected.job.complete(), expected.job.text());

  const Ran refused = run_feed(folder, "feed: preload", tight);
  CHECK(refused.job.report.ending == Ending::failed);
  CHECK_MESSAGE(refused.job.error.find("does not fit into memory") != std::string::npos,
                refused.job.error);
  CHECK(refused.job.error.find("preload_overflow: stream") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));

  const Ran partly = run_feed(folder, "feed: preload, preload_overflow: stream", tight);
  check_same(expected, partly);
  const std::size_t kept = number(partly.job, "preloaded_files");
  CHECK(kept > 0);
  CHECK(kept < 30);
  CHECK(partly.job.stage("read").bytes_out > 0);
  CHECK(partly.job.report.memory_peak <= partly.job.report.memory_budget);
}

TEST_CASE("feed: a stop while audio is loaded ends the run") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 40'000, 16000, i + 1);
  const std::string yaml = with_feed(speech_pipeline({}), "feed: preload");
  const JobResult job =
      run_job(yaml, in_out(folder / "clips", folder / "out.h5"), [](Runner& runner) {
        for (Progress p = runner.progress(); !p.is_filling || p.counts.closed() < 3;
             p = runner.progress())
          std::this_thread::yield();
        runner.stop();
      });
  REQUIRE(job.started);
  CHECK(job.report.ending == Ending::stopped);
  CHECK(job.report.counts.not_run == 300);
}

TEST_CASE("feed: a graph without one place for the store is refused") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 8000);
  std::string yaml = with_feed(speech_pipeline({}), "feed: preload");
  const auto message = [&](const std::string& text) -> std::string {
    try {
      (void)run_job(text, in_out(folder / "clips", folder / "out.h5"));
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  // A second output straight from decode.
  const std::string two_ends =
      yaml +
      "  segment2: {stage: segment, from: decode}\n"
      "  batch2: {stage: batch, from: segment2}\n"
      "  mel2: {stage: mel, from: batch2, sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 40}\n"
      "  write2: {stage: hdf5_write, from: mel2, path: \"${OUT}.2\"}\n";
  CHECK_MESSAGE(message(two_ends).find("several places") != std::string::npos, message(two_ends));
  const std::string by_hand =
      yaml + "  mine: {stage: keep_audio, from: resample}\n"
             "  segment2: {stage: segment, from: mine}\n"
             "  batch2: {stage: batch, from: segment2}\n"
             "  mel2: {stage: mel, from: batch2, n_fft: 512, hop: 160, n_mels: 40}\n"
             "  write2: {stage: hdf5_write, from: mel2, path: \"${OUT}.2\"}\n";
  CHECK(message(by_hand) != "");
  for (const char* wrong : {"feed: cache", "feed: preload, cache_path: x", "cache_path: x",
                            "feed: preload, uses: 0", "feed: ram"}) {
    CAPTURE(wrong);
    CHECK(message(with_feed(speech_pipeline({}), wrong)) != "");
  }
}

TEST_CASE("feed: two segments behind one resample share what is stored") {
  const TempFolder folder;
  make_corpus(folder);
  const auto both = [&](const std::string& feed, const std::string& out) {
    const std::string yaml = speech_pipeline({.memory = "1GiB"}) +
                             "  segment2: {stage: segment, from: resample, length: 4000}\n"
                             "  batch2: {stage: batch, from: segment2}\n"
                             "  mel2: {stage: mel, from: batch2, n_fft: 256, hop: 80, n_mels: 20}\n"
                             "  write2: {stage: hdf5_write, from: mel2, path: \"${OUT}.2\"}\n";
    const JobResult job =
        run_job(feed.empty() ? yaml : with_feed(yaml, feed), in_out(folder / "clips", out));
    REQUIRE_MESSAGE(job.complete(), job.text());
  };
  both("", folder / "a.h5");
  both("feed: preload", folder / "b.h5");
  CHECK(read_output(folder / "a.h5").difference(read_output(folder / "b.h5")) == "");
  CHECK(read_output(folder / "a.h5.2").difference(read_output(folder / "b.h5.2")) == "");
}
