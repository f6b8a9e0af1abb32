// Rows of samples: windows and whole recordings, in every number type, compared with the files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "pipeline/base/float16.h"
#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::samples_test {
namespace {

constexpr int kRate = 8000;

class Clips {
 public:
  JobResult run(const std::string& segment, const std::string& write,
                const std::string& rows = ", sample_rate: 8000", Update update = Update::none,
                const std::string& name = "out.h5") const {
    return run_job(fmt::format(R"(version: 1
workers: 2
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, block: 64KiB}}
  cut: {{stage: segment, from: decode{}}}
  rows: {{stage: samples, from: cut{}}}
  write: {{from: rows, path: "${{OUT}}", overwrite: true, {}}}
)",
                               segment, rows, write),
                   in_out(folder_ / "clips", path(name)), {}, update);
  }
  std::string write_audio(const std::string& name, const std::string& kind,
                          const std::vector<float>& samples, int rate = kRate) const {
    std::string path = folder_.file("clips/" + name);
    test::write_audio(path, audio_kind(kind), rate, samples);
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name = "out.h5") const {
    return folder_ / name;
  }
  [[nodiscard]] Output output() const { return read_output(path()); }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

std::vector<std::int16_t> as_int16(const std::string& bytes) {
  std::vector<std::int16_t> out(bytes.size() / 2);
  std::memcpy(out.data(), bytes.data(), out.size() * 2);
  return out;
}

const char* const kInt16 = "stage: hdf5_write, dtype: int16";

}  // namespace

TEST_CASE("samples: windows are the files' own samples, bit for bit") {
  const Clips clips;
  // The second is decoded in several blocks of 32,768 samples.
  clips.write_audio("a.wav", "wav s16", test_signal(2500, 1, 1));
  clips.write_audio("b.wav", "wav s16", test_signal(100'000, 1, 2));
  clips.write_audio("short.wav", "wav s16", test_signal(500, 1, 3));
  struct Row {
    const char* segment;
    std::int64_t length, hop;
    bool padded;
  };
  const Row rows[] = {{", length: 1000", 1000, 1000, false},
                      {", length: 1000, tail: pad", 1000, 1000, true},
                      {", length: 1000, hop: 300, tail: pad", 1000, 300, true},
                      {", length: 125ms, hop: 5000", 1000, 5000, false}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.segment));
    completed(clips.run(row.segment, kInt16));
    const Output out = clips.output();
    CHECK(out.type == "int16");
    CHECK(out.texts.at("rows") == "windows");
    CHECK(out.integers.at("sample_rate") == kRate);
    const std::vector<std::int16_t> stored = as_int16(out.mel_bytes);
    std::int64_t expected_rows = 0, wrong = 0;
    for (const std::string name : {"a.wav", "b.wav", "short.wav"}) {
      const std::vector<std::int16_t> all = read_audio(clips.folder() / "clips/" + name).int16;
      const auto n = static_cast<std::int64_t>(all.size());
      std::int64_t count = n < row.length ? 0 : (n - row.length) / row.hop + 1;
      const std::int64_t covered = count == 0 ? 0 : (count - 1) * row.hop + row.length;
      if (row.padded && covered < n) ++count;
      const Output::File& file = out.file(name);
      CHECK(file.count == count);
      expected_rows += count;
      for (std::int64_t i = 0; i < file.count * row.length; ++i) {
        const std::int64_t at = i / row.length * row.hop + i % row.length;
        const std::int16_t expected = at < n ? all[static_cast<std::size_t>(at)] : std::int16_t{0};
        if (stored[static_cast<std::size_t>(file.offset * row.length + i)] != expected) ++wrong;
      }
    }
    CHECK(wrong == 0);
    CHECK(out.shape == std::vector<std::uint64_t>{static_cast<std::uint64_t>(expected_rows), 1000});
  }
}

TEST_CASE("segment: the report says what the tails that give no row come to") {
  const Clips clips;
  clips.write_audio("a.wav", "wav s16", test_signal(2500));
  clips.write_audio("b.wav", "wav s16", test_signal(3000));
  clips.write_audio("c.wav", "wav s16", test_signal(1300));
  clips.write_audio("short.wav", "wav s16", test_signal(999));  // is skipped
  const JobResult dropped = clips.run(", length: 1000", kInt16);
  std::map<std::string, std::string> summary;
  for (const auto& [name, value] : dropped.stage("cut").summary) summary[name] = value.text();
  CHECK(summary ==
        std::map<std::string, std::string>{{"dropped_tails", "2"}, {"dropped_seconds", "0.100"}});
  CHECK(clips.run(", length: 1000, tail: pad", kInt16).stage("cut").summary.empty());
}

TEST_CASE("samples: a recording that is not cut is as many rows as it has samples") {
  const Clips clips;
  clips.write_audio("a.wav", "wav s16", test_signal(2500, 1, 1));
  clips.write_audio("b.flac", "flac s16", test_signal(100'000, 1, 2));
  const std::vector<std::int16_t> a = read_audio(clips.folder() / "clips/a.wav").int16;
  const std::vector<std::int16_t> b = read_audio(clips.folder() / "clips/b.flac").int16;
  std::vector<std::int16_t> all = a;
  all.insert(all.end(), b.begin(), b.end());

  SUBCASE("int16, in one piece and in compressed chunks") {
    for (const char* more : {"", ", compression: deflate"}) {
      completed(clips.run("", kInt16 + std::string(more)));
      const Output out = clips.output();
      CHECK(out.shape == std::vector<std::uint64_t>{102'500});
      CHECK(out.texts.at("rows") == "waveform");
      CHECK(out.file("b.flac").offset == 2500);
      CHECK(out.file("b.flac").count == 100'000);
      CHECK(as_int16(out.mel_bytes) == all);
    }
  }
  SUBCASE("floats are fractions of full scale") {
    for (const char* dtype : {"float32", "float16"}) {
      CAPTURE(std::string(dtype));
      completed(clips.run("", fmt::format("stage: npy_write, dtype: {}", dtype),
                          ", sample_rate: 8000", Update::none, "out.npy"));
      const FeatureFile file(clips.path("out.npy"));
      CHECK(file.has_samples());
      CHECK(file.bands() == 1);
      CHECK(file.frames_per_row() == 1);
      CHECK(file.dtype() == dtype);
      const std::vector<float> values = file.read_rows(0, file.rows());
      REQUIRE(values.size() == all.size());
      int wrong = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        float expected = static_cast<float>(all[i]) / 32768;
        if (dtype == std::string("float16")) expected = from_float16(to_float16(expected));
        if (values[i] != expected) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
  SUBCASE("an update keeps what is there") {
    REQUIRE(clips.run("", kInt16).complete());
    clips.write_audio("c.wav", "wav s16", test_signal(700, 1, 3));
    completed(clips.run("", kInt16, ", sample_rate: 8000", Update::append));
    const Output out = clips.output();
    const std::vector<std::int16_t> c = read_audio(clips.folder() / "clips/c.wav").int16;
    all.insert(all.end(), c.begin(), c.end());
    CHECK(as_int16(out.mel_bytes) == all);
  }
  SUBCASE("statistics are of all samples") {
    completed(clips.run("", "stage: hdf5_write, statistics: all"));
    double sum = 0, squares = 0;
    for (const std::int16_t v : all) sum += v / 32768.0;
    const double mean = sum / static_cast<double>(all.size());
    for (const std::int16_t v : all) squares += std::pow(v / 32768.0 - mean, 2);
    const FeatureFile file(clips.path());
    REQUIRE(file.statistics());
    REQUIRE(file.statistics()->mean.size() == 1);
    CHECK(file.statistics()->mean[0] == doctest::Approx(mean).epsilon(1e-9));
    CHECK(file.statistics()->std[0] ==
          doctest::Approx(std::sqrt(squares / static_cast<double>(all.size()))).epsilon(1e-9));
  }
}

TEST_CASE("samples: what goes beyond full scale is clipped and counted, no number fails its file") {
  const Clips clips;
  // Half steps are rounded to the even neighbour; 0x1.8p-16 is a step and a half.
  clips.write_audio("loud.wav", "wav float", {0, 1.5F, -2, 1, -1, 0x1p-16F, 0x1.8p-15F, -0.25F});
  std::vector<float> bad = test_signal(300);
  bad[120] = std::numeric_limits<float>::quiet_NaN();
  clips.write_audio("nan.wav", "wav float", bad);
  const JobResult job = completed(clips.run("", kInt16));
  CHECK(job.remarks_by_name() ==
        std::map<std::string, std::string>{
            {"nan.wav", "failed: decode: sample 120 is not a finite number"}});
  CHECK(as_int16(clips.output().mel_bytes) ==
        std::vector<std::int16_t>{0, 32767, -32768, 32767, -32768, 0, 2, -8192});
  REQUIRE(job.stage("rows").summary.size() == 1);
  CHECK(job.stage("rows").summary[0].first == "clipped_samples");
  CHECK(job.stage("rows").summary[0].second.text() == "2");

  clips.write_audio("far.wav", "wav float", {0, 70'000.0F});
  CHECK(clips.run("", "stage: hdf5_write, dtype: float16").remarks_by_name().at("far.wav") ==
        "failed: rows: sample 1 (at 0.000 s) is 70000, float16 ends at 65504");
}

TEST_CASE("samples: rates") {
  const Clips clips;
  clips.write_audio("a.wav", "wav s16", test_signal(2500), 8000);
  clips.write_audio("b.wav", "wav s16", test_signal(2500), 16000);
  SUBCASE("another than the one that is asked for fails the file") {
    CHECK(clips.run("", kInt16).remarks_by_name() ==
          std::map<std::string, std::string>{
              {"b.wav",
               "failed: rows: is sampled at 16000 Hz, samples.sample_rate is 8000; put a resample "
               "stage before, or leave such files out"}});
    CHECK(clips.output().rows() == 2500);
  }
  SUBCASE("any, each recording its own") {
    completed(clips.run("", kInt16, ""));
    const Output out = clips.output();
    CHECK(out.rows() == 5000);
    CHECK(out.integers.at("sample_rate") == 0);
    CHECK(out.file("b.wav").sample_rate == 16000);
  }
}

TEST_CASE("samples: what cannot be is refused before the run") {
  struct Row {
    const char* nodes;
    const char* expected;
  };
  const Row table[] = {
      {"  rows: {stage: samples, from: cut}\n"
       "  write: {stage: hdf5_write, from: rows, path: o.h5, statistics: all, normalize: true, "
       "dtype: int16}\n",
       "t.yaml:9:82: write.normalize: normalised values go beyond full scale, which int16 cannot "
       "hold; set dtype: float32, or leave the samples as they are"},
      {"  batch: {stage: batch, from: cut}\n"
       "  rows: {stage: mel, from: batch, preset: whisper}\n"
       "  write: {stage: hdf5_write, from: rows, path: o.h5, dtype: int16}\n",
       "t.yaml:10:61: write.dtype: int16 holds samples of which 1 is full scale (stage samples), "
       "and what arrives is mel in log10 power, normalized; store float32, float16 or bfloat16"},
      {"  rows: {stage: samples, from: cut}\n"
       "  more: {stage: mfcc, from: rows}\n"
       "  write: {stage: hdf5_write, from: more, path: o.h5}\n",
       "t.yaml:9:3: more: needs rows of features, what arrives are samples"},
      {"  rows: {stage: samples, from: cut}\n"
       "  more: {stage: deltas, from: rows}\n"
       "  write: {stage: hdf5_write, from: more, path: o.h5}\n",
       "t.yaml:9:3: more: needs rows of features, what arrives are samples"},
      {"  rows: {stage: samples, from: cut}\n"
       "  more: {stage: pcen, from: rows}\n"
       "  write: {stage: hdf5_write, from: more, path: o.h5}\n",
       "t.yaml:9:3: more: needs rows of features, what arrives are samples"}};
  for (const Row& row : table) {
    const std::string yaml = R"(version: 1
graph:
  files: {stage: file_list, root: .}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  rate: {stage: resample, from: decode, rate: 16000}
  cut: {stage: segment, from: rate}
)" + std::string(row.nodes);
    const std::string got = problems_in([&] { return load_plan_text(yaml, "t.yaml"); });
    CHECK(got == row.expected);
  }
}

}  // namespace melflow::test::samples_test
