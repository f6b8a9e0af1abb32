// Long recordings decoded by several workers in whole runs: the same datasets as by one, however
// many there are, in however little memory, and whatever becomes of the run.
#include <doctest/doctest.h>

#include <thread>

#include "tests/jobs/shared.h"

namespace ahead_test {

using namespace melflow::test;

namespace {

void damage(const std::string& from, const std::string& to, std::size_t at) {
  std::string bytes = read_bytes(from);
  bytes[at] = static_cast<char>(~bytes[at]);
  std::ofstream(to, std::ios::binary) << bytes;
}

// Good and broken long FLAC files among short ones.
void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < 5; ++i) {
    const AudioKind& kind = audio_kind(i % 2 == 0 ? "flac s16" : "flac s16 stereo");
    write_audio(folder.file("clips/a" + std::to_string(i) + ".flac"), kind,
                i % 2 == 0 ? 16000 : 44100, test_signal(700'000 + 1000 * i, kind.channels, i));
  }
  const std::string good = folder / "clips/a1.flac";
  const auto size = read_bytes(good).size();
  damage(good, folder.file("clips/b_damaged.flac"), size / 2);
  damage(good, folder.file("clips/b_damaged_at_the_end.flac"), size - 100);
  copy_truncated(good, folder.file("clips/b_short.flac"), static_cast<std::int64_t>(size / 3));
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file("clips/c" + std::to_string(i) + ".wav"), 9000 + 100 * i, 16000, i);
}

melflow::LoadOptions options(const TempFolder& folder, const std::string& out,
                             const std::string& ahead) {
  melflow::LoadOptions o = in_out(folder / "clips", folder / out);
  if (!ahead.empty()) o.sets = {{"decode.ahead", ahead}};
  return o;
}

}  // namespace

TEST_CASE("ahead: the same datasets and remarks, for any workers, memory and number of blocks") {
  const TempFolder folder;
  make_corpus(folder);
  const JobResult alone = run_job(speech_pipeline({.block = "64KiB", .whole = "4KiB"}),
                                  options(folder, "alone.h5", "0"));
  REQUIRE_MESSAGE(alone.complete(), alone.text());
  const Output expected = read_output(folder / "alone.h5");
  CHECK(expected.remarks.size() >= 2);
  const Knobs knobs[] = {
      {.concurrency = 1, .queue = 1, .memory = "64MiB", .block = "64KiB", .whole = "4KiB"},
      {.concurrency = 3, .memory = "64MiB", .block = "100KiB", .whole = "4KiB", .workers = 8},
      {.concurrency = 4, .memory = "1GiB", .block = "64KiB", .whole = "4KiB", .workers = 4},
      {.memory = "80MiB", .block = "300KiB", .whole = "4KiB", .workers = 5},
  };
  for (const Knobs& k : knobs) {
    for (const char* ahead : {"", "1", "64"}) {
      CAPTURE(k.text());
      CAPTURE(std::string(ahead));
      std::filesystem::remove(folder / "other.h5");
      const JobResult other = run_job(speech_pipeline(k), options(folder, "other.h5", ahead));
      REQUIRE_MESSAGE(other.complete(), other.text());
      CHECK(expected.difference(read_output(folder / "other.h5")) == "");
      CHECK(other.report.memory_peak <= other.report.memory_budget);
    }
  }
}

TEST_CASE("ahead: a run that is stopped in the middle of long recordings ends, with what is done") {
  const TempFolder folder;
  make_corpus(folder);
  const Knobs k{.block = "64KiB", .whole = "4KiB", .workers = 6};
  const JobResult whole = run_job(speech_pipeline(k), options(folder, "whole.h5", ""));
  REQUIRE_MESSAGE(whole.complete(), whole.text());
  const Output expected = read_output(folder / "whole.h5");
  for (const std::size_t rows : {1, 500, 2000, 5000, 9000}) {
    CAPTURE(rows);
    const JobResult job =
        run_job(speech_pipeline(k), options(folder, "s.h5", "64"), [&](melflow::Runner& r) {
          while (r.progress().rows < rows && r.progress().counts.closed() < 38)
            std::this_thread::yield();
          r.stop();
        });
    CHECK(job.report.counts.failed == 0);
    if (job.complete()) {  // it was quicker than the stop
      std::filesystem::remove(folder / "s.h5");
      continue;
    }
    const Output out = read_output(folder / "s.h5.part");
    for (const Output::File& f : out.files)
      if (f.status == 0) CHECK(out.rows_of(f.path) == expected.rows_of(f.path));
  }
}

}  // namespace ahead_test
