// Long FLAC recordings, good and damaged, that are read while they are decoded: the same datasets
// for any number of workers, size of blocks, and memory.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/jobs/shared.h"

namespace long_files_test {

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
  copy_truncated(good, folder.file("clips/b_short.flac"),
                 static_cast<std::int64_t>(size * 19 / 20));
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file("clips/c" + std::to_string(i) + ".wav"), 9000 + 100 * i, 16000, i);
}

}  // namespace

TEST_CASE(
    "long files: the same datasets and warnings, for any workers, memory and size of blocks") {
  const Filled<make_corpus> folder;
  const JobResult alone =
      completed(run_job(speech_pipeline({.block = "64KiB", .whole = "4KiB", .workers = 1}),
                        in_out(folder / "clips", folder / "alone.h5")));
  const Output expected = read_output(folder / "alone.h5");
  CHECK(expected.remarks.size() >= 2);
  const Knobs knobs[] = {
      {.concurrency = 1, .queue = 1, .memory = "64MiB", .block = "64KiB", .whole = "4KiB"},
      {.concurrency = 3, .memory = "64MiB", .block = "100KiB", .whole = "4KiB", .workers = 8},
      {.concurrency = 4, .memory = "1GiB", .block = "64KiB", .whole = "4KiB", .workers = 4},
      {.memory = "80MiB", .block = "300KiB", .whole = "4KiB", .workers = 5},
  };
  for (const Knobs& k : knobs) {
    CAPTURE(k.text());
    std::filesystem::remove(folder / "other.h5");
    const JobResult other =
        completed(run_job(speech_pipeline(k), in_out(folder / "clips", folder / "other.h5")));
    CHECK(expected.difference(read_output(folder / "other.h5")) == "");
    CHECK(other.report.memory_peak <= other.report.memory_budget);
  }
}

TEST_CASE("long files: how long those of the list are decides which memory is enough") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file("clips/c" + std::to_string(i) + ".wav"), 9000 + 100 * i, 16000, i);
  const auto ran = [&](const std::string& memory, const std::string& block) {
    std::filesystem::remove(folder / "out.h5");
    return run_job(speech_pipeline({.memory = memory, .block = block}),
                   in_out(folder / "clips", folder / "out.h5"));
  };
  const auto has_note = [](const JobResult& job) {
    const auto& told = job.report.warnings;
    return std::any_of(told.begin(), told.end(), [](const std::string& text) {
      return text.find("is enough for short files only") != std::string::npos;
    });
  };
  CHECK_FALSE(has_note(completed(ran("1GiB", "1MiB"))));
  const Output expected = read_output(folder / "out.h5");
  const JobResult short_ones = completed(ran("24MiB", "256MiB"));
  CHECK(has_note(short_ones));
  CHECK(short_ones.report.memory_peak <= std::size_t{24} << 20);
  CHECK(expected.difference(read_output(folder / "out.h5")) == "");

  // A FLAC file may be as long as a block, whatever its size.
  write_audio(folder.file("clips/d.flac"), audio_kind("flac s16"), 16000, test_signal(9000, 1, 1));
  const JobResult refused = ran("24MiB", "256MiB");
  CHECK_FALSE(refused.started);
  CHECK_MESSAGE(refused.error.starts_with("memory.host: 24MiB is too little: the index of 31 files "
                                          "takes "),
                refused.error);
  const std::string at_least = " MiB at least (for ";
  CHECK_MESSAGE(refused.error.find(at_least) != std::string::npos, refused.error);
  const std::size_t set = refused.error.find("; set ") + 6;
  // As much as it names is enough.
  completed(ran(refused.error.substr(set, refused.error.find(',', set) - set), "256MiB"));
}

}  // namespace long_files_test
