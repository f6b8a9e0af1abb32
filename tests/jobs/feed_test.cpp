// Rows do not depend on the feed: every feed gives the same rows and the same messages about every
// file.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "stages/audio/reading/uring_engine.h"
#include "tests/jobs/shared.h"
#include "tests/support/hold.h"
#include "tests/support/small_disk.h"

namespace melflow::test::feed_test {
namespace {

// Clips of many kinds and rates, two of several blocks, and some that leave no rows or have a
// warning.
void make_corpus(const TempFolder& folder) {
  write_clips(
      folder, {"wav s16", "wav float", "flac s16", "mp3", "wav s16 stereo"},
      {.seed = 11, .count = 25, .longest = 30'000, .long_ones = {11, 12}, .long_frames = 250'000});
  write_wav(folder.file("clips/3/whole.wav"), 9000);
  copy_truncated(folder / "clips/3/whole.wav", folder / "clips/3/cut.wav", -1500);
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

// Compares rows, index and warnings.
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
  CHECK(plain.output.texts.at("feature_fingerprint") ==
        preload.output.texts.at("feature_fingerprint"));
}

TEST_CASE("feed: preload makes the rows of stream, however the work is spread") {
  const Filled<make_corpus> folder;
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
  const Filled<make_corpus> folder;
  std::filesystem::remove_all(folder / "clips/1");  // folders with only good files stay
  std::filesystem::remove(folder / "clips/2/empty.wav");
  std::filesystem::remove(folder / "clips/3/cut.wav");
  const Ran r = run_feed(folder, "feed: preload");
  REQUIRE_MESSAGE(r.job.complete(), r.job.text());
  CHECK(r.job.stage("read").bytes_out == 0);
  CHECK(r.job.report.counts.ok == 21);
  CHECK(number(r.job, "preloaded_files") == 21);
}

TEST_CASE("feed: preload tells the time of loading each split") {
  const TempFolder folder;
  for (unsigned i = 0; i < 9; ++i)
    write_wav(folder.file(fmt::format("clips/{}/{}.wav", i < 6 ? "train" : "test", i)), 8000, 16000,
              i + 1);
  const Ran r = run_feed(folder, "feed: preload, splits: top_dir");
  REQUIRE_MESSAGE(r.job.complete(), r.job.text());
  const Value* splits = nullptr;
  for (const auto& [key, value] : r.job.stage("files").summary)
    if (key == "splits") splits = &value;
  REQUIRE(splits != nullptr);
  REQUIRE(splits->items().size() == 2);
  double all = 0;
  for (const Value& split : splits->items()) {
    const bool is_train = split.find("name")->text() == "train";
    CHECK(split.find("preloaded_files")->text() == (is_train ? "6" : "3"));
    const double seconds = std::stod(split.find("loading_seconds")->text());
    CHECK(seconds > 0);
    all += seconds;
  }
  CHECK(all <= r.job.report.filling_seconds + 1e-5);
}

TEST_CASE("feed: preload that does not fit is refused, or streams the rest") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)  // 1 MB each
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 500'000, 16000, i + 1);
  const Knobs tight{
      .concurrency = 1, .queue = 1, .memory = "48MiB", .block = "64KiB", .workers = 1};
  const Ran expected = run_feed(folder, "", tight);
  REQUIRE_MESSAGE(expected.job.complete(), expected.job.text());

  // Headers say it before anything is decoded.
  const Ran refused = run_feed(folder, "feed: preload", tight);
  CHECK_FALSE(refused.job.started);
  CHECK_MESSAGE(refused.job.error.find("does not fit into memory: by the headers of 30 of 30 files "
                                       "all of them take 29 MiB") != std::string::npos,
                refused.job.error);
  CHECK(refused.job.error.find("preload_overflow: stream") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
  // As much as it names is enough.
  const std::string begin = "raise memory.host to ";
  const std::size_t at = refused.job.error.find(begin) + begin.size();
  Knobs enough = tight;
  enough.memory = refused.job.error.substr(at, refused.job.error.find(',', at) - at);
  const Ran loaded = run_feed(folder, "feed: preload", enough);
  CHECK_MESSAGE(number(loaded.job, "preloaded_files") == 30, refused.job.error, loaded.job.text());
  std::filesystem::remove(folder / "out.h5");

  const Ran partly = run_feed(folder, "feed: preload, preload_overflow: stream", tight);
  check_same(expected, partly);
  const std::size_t kept = number(partly.job, "preloaded_files");
  CHECK(kept > 0);
  CHECK(kept < 30);
  CHECK(number(partly.job, "expected_bytes") == 30'000'000);
  CHECK(partly.job.stage("read").bytes_out > 0);
  CHECK(partly.job.report.memory_peak <= partly.job.report.memory_budget);
}

TEST_CASE("feed: preload whose headers do not tell its size is refused when memory is full") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i) {
    const std::string path = folder.file("clips/" + std::to_string(i) + ".flac");
    write_audio(path, audio_kind("flac s16"), 16000, test_signal(500'000, 1, i));
    std::string bytes = read_bytes(path);
    set_flac_total(bytes, 0);
    write_bytes(path, bytes);
  }
  const Ran refused =
      run_feed(folder, "feed: preload",
               {.concurrency = 1, .queue = 1, .memory = "48MiB", .block = "64KiB", .workers = 1});
  CHECK(refused.job.report.ending == Ending::failed);
  CHECK_MESSAGE(refused.job.error.find(" of 30 files fill the ") != std::string::npos,
                refused.job.error);
}

TEST_CASE("feed: what is before mel finds the cache that the same before discard has filled") {
  const TempFolder folder;
  for (unsigned i = 0; i < 5; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 20'000, 16000, i + 1);
  const auto run = [&](const std::string& before, const std::string& rest, const char* cache) {
    LoadOptions options = in_out(folder / "clips", folder / "out.h5");
    if (rest.find("OUT") == rest.npos) options.vars.pop_back();
    const JobResult job = completed(run_job(
        fmt::format(
            "version: 1\ngraph:\n"
            "  files: {{stage: file_list, root: \"${{DATA}}\", feed: cache, cache_path: {}}}\n"
            "  read: {{stage: disk_read, from: files}}\n{}{}",
            folder / cache, before, rest),
        options));
    CHECK(job.report.counts.ok == 5);
    return number(job, "from_cache");
  };
  const std::string mel =
      "  mel: {stage: mel, from: last, sample_rate: 16000, n_fft: 400, n_mels: 20}\n"
      "  write: {stage: hdf5_write, from: mel, path: \"${OUT}\", overwrite: true}\n";
  const std::pair<const char*, std::string> rows[] = {
      {"fit", "  last: {stage: decode, from: read, fit: 500ms}\n"},
      {"trim",
       "  decode: {stage: decode, from: read}\n"
       "  last: {stage: trim_silence, from: decode, threshold: -60dB, frame: 25ms, hop: 10ms}\n"}};
  for (const auto& [cache, before] : rows) {
    CAPTURE(cache);
    CHECK(run(before, "  end: {stage: discard, from: last}\n", cache) == 0);
    CHECK(run(before, mel, cache) == 5);
    CHECK(run(before, "  end: {stage: discard, from: last}\n", cache) == 5);
  }
  // Others are decoded again.
  CHECK(run("  last: {stage: decode, from: read, fit: 501ms}\n", mel, "fit") == 0);
}

TEST_CASE("feed: a stop while audio is loaded ends the run") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 40'000, 16000, i + 1);
  const std::string yaml = with_feed(speech_pipeline({}), "feed: preload");
  const JobResult job =
      run_and_stop(yaml, in_out(folder / "clips", folder / "out.h5"), {.let_in = 10, .closed = 3});
  REQUIRE(job.started);
  CHECK(job.report.ending == Ending::stopped);
  CHECK(job.report.counts.not_run == 300);
}

TEST_CASE("feed: two segments behind one resample share what is stored") {
  const Filled<make_corpus> folder;
  const auto both = [&](const std::string& feed, const std::string& out) {
    const std::string yaml = speech_pipeline({.memory = "1GiB"}) +
                             "  segment2: {stage: segment, from: resample, length: 4000}\n"
                             "  batch2: {stage: batch, from: segment2}\n"
                             "  mel2: {stage: mel, from: batch2, n_fft: 256, hop: 80, n_mels: 20}\n"
                             "  write2: {stage: hdf5_write, from: mel2, path: \"${OUT}.2\"}\n";
    completed(run_job(feed.empty() ? yaml : with_feed(yaml, feed), in_out(folder / "clips", out)));
  };
  both("", folder / "a.h5");
  both("feed: preload", folder / "b.h5");
  CHECK(read_output(folder / "a.h5").difference(read_output(folder / "b.h5")) == "");
  CHECK(read_output(folder / "a.h5.2").difference(read_output(folder / "b.h5.2")) == "");
}

TEST_CASE("feed: a cache makes the rows of stream, in the run that builds it and in later ones") {
  std::size_t later_by = 1;
  for (const char* segment : {"", ", length: 4000, hop: 1500, tail: pad"}) {
    CAPTURE(segment);
    const Filled<make_corpus> folder;
    const Ran expected = run_feed(folder, "", {}, segment);
    REQUIRE_MESSAGE(expected.job.complete(), expected.job.text());
    // Each variant builds a cache, and each reads what another variant has built: not the same one
    // with every segment.
    const std::vector<Knobs> ways = ways_to_run();
    for (std::size_t way = 0; way < ways.size(); ++way) {
      CAPTURE(ways[way].text());
      const std::string feed =
          "feed: cache, cache_path: " + (folder / ("cache" + std::to_string(way)));
      const Ran first = run_feed(folder, feed, ways[way], segment);
      check_same(expected, first);
      CHECK(number(first.job, "from_cache") == 0);
      const std::size_t added = number(first.job, "added");
      CHECK(added > 20);
      const Knobs& other = ways[(way + later_by) % ways.size()];
      CAPTURE(other.text());
      const Ran later = run_feed(folder, feed, other, segment);
      check_same(expected, later);
      CHECK(number(later.job, "from_cache") == added);
      CHECK(number(later.job, "added") == 0);
      CHECK(later.job.report.warnings.empty());
    }
    ++later_by;
  }
}

namespace {

// Returns the only cache file in a folder.
std::string cache_file(const std::string& folder) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    REQUIRE(found == "");
    found = entry.path().string();
  }
  return found;
}

}  // namespace

TEST_CASE("feed: other settings of decode and resample have a cache file of their own, mel's not") {
  const Filled<make_corpus> folder;
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  const auto run = [&](const std::string& from, const std::string& to,
                       const std::string& mel = "") {
    std::string yaml = with_feed(speech_pipeline({}, "", mel), feed);
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    std::filesystem::remove(folder / "out.h5");
    const JobResult job = completed(run_job(yaml, in_out(folder / "clips", folder / "out.h5")));
    return number(job, "from_cache");
  };
  CHECK(run("", "") == 0);
  CHECK(run("", "", ", preset: kaldi") > 0);
  CHECK(run("stage: decode,", "stage: decode, downmix: left,") == 0);
  CHECK(run("rate: 16000", "rate: 22050") == 0);
  CHECK(run("rate: 16000", "rate: 16000, quality: medium") == 0);
  CHECK(run("", "") > 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "cache"),
                      std::filesystem::directory_iterator()) == 4);
}

TEST_CASE("feed: a cache follows files that change, come and go") {
  const TempFolder folder;
  for (unsigned i = 0; i < 12; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 9000, 16000, i + 1);
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  check_same(run_feed(folder, ""), run_feed(folder, feed));

  write_wav(folder / "clips/new.wav", 7000, 16000, 99);  // added
  std::filesystem::remove(folder / "clips/0.wav");       // gone
  write_wav(folder / "clips/1.wav", 9500, 16000, 50);    // another size
  const auto time = std::filesystem::last_write_time(folder / "clips/2.wav");
  write_wav(folder / "clips/2.wav", 9000, 16000, 51);  // the same size
  std::filesystem::last_write_time(folder / "clips/2.wav", time + std::chrono::seconds(2));
  const Ran expected = run_feed(folder, ""), after = run_feed(folder, feed);
  check_same(expected, after);
  CHECK(number(after.job, "from_cache") == 9);
  CHECK(number(after.job, "added") == 3);
  const Ran again = run_feed(folder, feed);
  check_same(expected, again);
  CHECK(number(again.job, "from_cache") == 12);

  // Lists the same folder under another path.
  std::filesystem::create_directory_symlink(folder / "clips", folder / "link");
  std::filesystem::remove(folder / "out.h5");
  const JobResult linked = run_job(with_feed(speech_pipeline({}), feed),
                                   in_out(folder / "link/../clips", folder / "out.h5"));
  CHECK(number(linked, "from_cache") == 12);
}

TEST_CASE("feed: damaged samples in a cache are decoded afresh and replaced") {
  const Filled<make_corpus> folder;
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  const Ran expected = run_feed(folder, "");
  for (const Knobs& knobs : ways_to_run()) {
    CAPTURE(knobs.text());
    std::filesystem::remove_all(folder / "cache");
    const Ran first = run_feed(folder, feed, knobs);
    check_same(expected, first);
    const std::string path = cache_file(folder / "cache");
    std::string bytes = read_bytes(path);
    for (std::size_t at = 5000; at < 400'000; at += 60'000)
      bytes[at] = static_cast<char>(~bytes[at]);
    write_bytes(path, bytes);
    const Ran damaged = run_feed(folder, feed, knobs);
    check_same(expected, damaged);
    CHECK(number(damaged.job, "damaged") > 0);
    CHECK(number(damaged.job, "added") == number(damaged.job, "damaged"));
    const Ran after = run_feed(folder, feed, knobs);
    check_same(expected, after);
    CHECK(number(after.job, "damaged") == 0);
    CHECK(number(after.job, "from_cache") == number(first.job, "added"));
  }
}

TEST_CASE("feed: a cache that is no cache is recreated, with a warning about the run") {
  const Filled<make_corpus> folder;
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  const Ran expected = run_feed(folder, feed);
  const std::string path = cache_file(folder / "cache");
  write_bytes(path, read_bytes(path).substr(0, 3000));
  const Ran after = run_feed(folder, feed);
  check_same(expected, after);
  REQUIRE(after.job.report.warnings.size() == 1);
  CHECK(after.job.report.warnings[0].find("is recreated") != std::string::npos);
  CHECK(number(after.job, "added") == number(expected.job, "added"));
  CHECK(number(run_feed(folder, feed).job, "from_cache") == number(expected.job, "added"));
}

TEST_CASE("feed: a cache that cannot be written on leaves the run as it is") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file("clips/a/" + std::to_string(i) + ".wav"), 90'000, 16000, i + 1);
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  const Ran expected = run_feed(folder, "", {}, ", length: 4000");
  {
    // Rows take less than this limit, samples more.
    const FileSizeLimit limit(3'500'000);
    const Ran full = run_feed(folder, feed, {}, ", length: 4000");
    check_same(expected, full);
    REQUIRE(full.job.report.warnings.size() == 1);
    CHECK_MESSAGE(full.job.report.warnings[0].find("stores no further audio") != std::string::npos,
                  full.job.report.warnings[0]);
  }
  check_same(expected, run_feed(folder, feed, {}, ", length: 4000"));
}

TEST_CASE("feed: a folder where no cache can be made is an error, one that can be read is read") {
  const Filled<make_corpus> folder;
  ::chmod(folder.folder("out").c_str(), 0777);
  folder.folder("closed");
  const auto run = [&](const std::string& cache) {
    std::filesystem::remove(folder / "out/o.h5");
    return run_job(with_feed(speech_pipeline({}), "feed: cache, cache_path: " + cache),
                   in_out(folder / "clips", folder / "out/o.h5"));
  };
  REQUIRE(run(folder / "cache").complete());
  ::chmod(cache_file(folder / "cache").c_str(), 0444);
  const OtherUser nobody;
  if (!nobody.ok()) return;
  const JobResult closed = run(folder / "closed/cache");
  CHECK_FALSE(closed.started);
  CHECK_MESSAGE(closed.error.find("cannot be written") != std::string::npos, closed.error);
  const JobResult read = completed(run(folder / "cache"));
  CHECK(number(read, "from_cache") > 20);
  CHECK(read.report.warnings.size() == 1);
}

TEST_CASE("feed: a stopped run leaves what it stored") {
  const TempFolder folder;
  for (unsigned i = 0; i < 300; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 40'000, 16000, i + 1);
  const std::string feed = "feed: cache, cache_path: " + (folder / "cache");
  const JobResult job =
      run_and_stop(with_feed(speech_pipeline({}), feed),
                   in_out(folder / "clips", folder / "out.h5"), {.let_in = 24, .closed = 20});
  CHECK(job.report.ending == Ending::stopped);
  const std::size_t added = number(job, "added");
  CHECK(added >= 20);
  CHECK(added < 300);
  const Ran after = run_feed(folder, feed);
  check_same(run_feed(folder, ""), after);
  CHECK(number(after.job, "from_cache") == added);
}

TEST_CASE("feed: auto streams what is used once, caches what is used often, and says why") {
  const Filled<make_corpus> folder;
  const Ran expected = run_feed(folder, "");
  const std::string to = ", cache_path: " + (folder / "cache");
  struct Row {
    std::string feed;
    const char *chosen, *says;
    bool has_node;
  };
  const Row rows[] = {
      {"feed: auto", "stream", "there is no cache_path", false},
      {"feed: auto, uses: 10", "stream", "there is no cache_path", false},
      {"feed: auto, uses: 1" + to, "stream", "used once", true},
      {"feed: auto, uses: 2, cache_path: /proc/no", "stream", "would take", true},
      {"feed: auto, uses: 2" + to, "cache", "used 2 times", true},
      {"feed: auto, uses: 1" + to, "cache", "a valid cache holds", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.feed);
    const Ran r = run_feed(folder, row.feed);
    check_same(expected, r);
    CHECK(figure(r.job, "feed") == row.chosen);
    CHECK_MESSAGE(figure(r.job, "why").find(row.says) != std::string::npos, figure(r.job, "why"));
    CHECK((r.job.report.stages.size() > expected.job.report.stages.size()) == row.has_node);
  }
}

TEST_CASE("feed: an update loads and stores only what it computes") {
  const TempFolder folder;
  for (unsigned i = 0; i < 8; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 9000, 16000, i + 1);
  const std::string plain = speech_pipeline({});
  const auto updated = [&](const std::string& yaml, const std::string& out) {
    completed(run_job(plain, in_out(folder / "clips", out)));
    write_wav(folder / "clips/new.wav", 7000, 16000, 99);
    JobResult job = run_job(yaml, in_out(folder / "clips", out), {}, Update::append);
    std::filesystem::remove(folder / "clips/new.wav");
    REQUIRE_MESSAGE(job.complete(), job.text());
    return job;
  };
  updated(plain, folder / "stream.h5");
  const JobResult preload = updated(with_feed(plain, "feed: preload"), folder / "preload.h5");
  CHECK(number(preload, "preloaded_files") == 1);
  const JobResult cache = updated(
      with_feed(plain, "feed: cache, cache_path: " + (folder / "cache")), folder / "cache.h5");
  CHECK(number(cache, "added") == 1);
  const Output expected = read_output(folder / "stream.h5");
  for (const char* name : {"preload.h5", "cache.h5"}) {
    const Output got = read_output(folder / name);
    CHECK(expected.mel_bytes == got.mel_bytes);
    CHECK(got.rows() == expected.rows());
  }
}

}  // namespace melflow::test::feed_test
