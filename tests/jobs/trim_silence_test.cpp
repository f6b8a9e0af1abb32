// Whole runs with trim_silence: rows are those of recordings that were trimmed before, whatever
// blocks they come in and whatever stages follow.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/jobs/shared.h"

namespace melflow::test::trim_silence_test {
namespace {

constexpr int kRate = 16'000;

// Silence, sound and silence, in samples; frames of 256 every 128.
struct Recording {
  std::int64_t before, sound, behind;
};
constexpr Recording kRecordings[] = {
    {1000, 20'000, 3000}, {100'000, 50'000, 200'000}, {0, 150'000, 0}, {70'000, 40, 70'000}};

std::string pipeline(const std::string& trim, const std::string& behind, const std::string& segment,
                     const std::string& block, int workers) {
  return fmt::format(R"(version: 1
workers: {4}
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, block: {3}}}
{0}{1}  segment: {{stage: segment, from: last{2}}}
  batch: {{stage: batch, from: segment, files: 2}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, log: db}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", overwrite: true}}
)",
                     trim, behind, segment, block, workers);
}

}  // namespace

TEST_CASE("trim_silence: rows are those of trimmed recordings, in blocks of any size") {
  const TempFolder folder;
  for (std::size_t i = 0; i < std::size(kRecordings); ++i) {
    const auto [before, sound, behind] = kRecordings[i];
    std::vector<float> all(static_cast<std::size_t>(before + sound + behind));
    const std::vector<float> tone = test_signal(sound, 1, static_cast<unsigned>(i) + 1);
    std::copy(tone.begin(), tone.end(), all.begin() + before);
    const AudioKind& kind = audio_kind(i % 2 == 0 ? "wav s16" : "flac s16");
    const std::string name = fmt::format("{}.{}", i, kind.ending);
    write_audio(folder.file("clips/" + name), kind, kRate, all);
    // The sound begins and ends so loud that a frame is silent only if it contains none of it: the
    // hops from the first frame with sound to the end of the last one's are left.
    std::int64_t begin = 0, end = 0;
    const auto n = static_cast<std::int64_t>(all.size());
    for (std::int64_t frame = 0; frame * 128 <= n; ++frame) {
      double sum = 0;
      for (std::int64_t s = std::max<std::int64_t>(0, frame * 128 - 128);
           s < std::min(n, frame * 128 + 128); ++s)
        sum += static_cast<double>(all[static_cast<std::size_t>(s)]) *
               all[static_cast<std::size_t>(s)];
      if (sum / 256 <= 1e-5) continue;
      if (end == 0) begin = frame * 128;
      end = std::min(n, (frame + 1) * 128);
    }
    REQUIRE(end > begin);
    write_audio(folder.file("trimmed/" + name), kind, kRate,
                std::vector<float>(all.begin() + begin, all.begin() + end));
  }
  const std::string to_last = "  last: {stage: resample, from: way, rate: 8000}\n";
  const std::string filter = "  way: {stage: filter, from: trim, where: {rate: \"> 1000\"}}\n";
  for (const char* segment : {"", ", length: 2000, hop: 1000, tail: pad"}) {
    CAPTURE(std::string(segment));
    const JobResult plain = completed(
        run_job(pipeline("  way: {stage: filter, from: decode, where: {rate: \"> 1000\"}}\n",
                         to_last, segment, "4MiB", 2),
                in_out(folder / "trimmed", folder / "plain.h5")));
    REQUIRE(plain.report.counts.ok == 4);
    const Output expected = read_output(folder / "plain.h5");
    for (const char* rule : {"threshold: -50dB", "top_db: 40"})
      for (const char* block : {"64KiB", "128KiB", "4MiB"})
        for (const int workers : {1, 3}) {
          CAPTURE(std::string(rule));
          CAPTURE(std::string(block));
          const JobResult job = completed(run_job(
              pipeline(fmt::format("  trim: {{stage: trim_silence, from: decode, {}, frame: 256, "
                                   "hop: 128}}\n{}",
                                   rule, filter),
                       to_last, segment, block, workers),
              in_out(folder / "clips", folder / "out.h5")));
          REQUIRE_MESSAGE(job.report.counts.ok == 4, job.text());
          const Output got = read_output(folder / "out.h5");
          CHECK(got.mel_bytes == expected.mel_bytes);
          CHECK(got.files.size() == 4);
          for (std::size_t i = 0; i < got.files.size(); ++i) {
            CHECK(got.files[i].count == expected.files[i].count);
            CHECK(got.files[i].offset == expected.files[i].offset);
          }
        }
  }
}

// Which of two branches is first to report a silent file depends on timing.
TEST_CASE("trim_silence: what two branches say of a file does not depend on who comes first") {
  const TempFolder folder;
  for (int i = 0; i < 60; ++i) {
    const std::vector<float> samples =
        i % 3 == 0 ? std::vector<float>(6000) : test_signal(6000, 1, static_cast<unsigned>(i) + 1);
    write_audio(folder.file(fmt::format("clips/{:02}.wav", i)), audio_kind("wav s16"), kRate,
                samples);
  }
  const auto pipeline = [](int workers) {
    std::string out = fmt::format(R"(version: 1
workers: {}
graph:
  files: {{stage: file_list, root: "${{DATA}}", files_per_task: 1}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
)",
                                  workers);
    for (const auto& [name, threshold] : {std::pair{"a", -40}, std::pair{"b", -60}})
      out += fmt::format(R"(  trim_{0}: {{stage: trim_silence, from: decode, threshold: {1}dB}}
  segment_{0}: {{stage: segment, from: trim_{0}}}
  batch_{0}: {{stage: batch, from: segment_{0}}}
  mel_{0}: {{stage: mel, from: batch_{0}, sample_rate: 16000, n_mels: 20}}
  write_{0}: {{stage: hdf5_write, from: mel_{0}, path: "${{OUT}}.{0}.h5", overwrite: true}}
)",
                         name, threshold);
    return out;
  };
  std::string first_reasons;
  for (const int workers : {1, 2, 4}) {
    std::string first;
    for (int run = 0; run < 5; ++run) {
      CAPTURE(workers);
      const JobResult job = run_job(pipeline(workers), in_out(folder / "clips", folder / "out"));
      CHECK(job.report.counts.ok == 40);
      CHECK(job.report.counts.skipped == 20);
      std::string reasons;
      for (const Remark& m : job.remarks)
        reasons += fmt::format("{}: {} {}\n", m.name, m.entry.stage, m.entry.reason);
      CHECK(reasons.find("trim_b") == reasons.npos);
      if (first_reasons.empty()) first_reasons = reasons;
      CHECK(reasons == first_reasons);
      const std::string bytes = read_bytes(folder / "out.a.h5") + read_bytes(folder / "out.b.h5");
      if (first.empty()) first = bytes;
      CHECK((bytes == first));
    }
  }
}

}  // namespace melflow::test::trim_silence_test
