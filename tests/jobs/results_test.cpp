// Several results per recording: the rows of each equal those of a file with the same content,
// whatever the blocks, the memory and the number of workers are; and the output says which rows are
// whose, also when they were kept by an update, resumed or merged.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/rows/row_hash.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace results_test {

using namespace melflow;
using namespace melflow::test;

namespace {

constexpr int kRate = 16000;
const std::vector<double> kFactors{0.9, 1, 1.25};

struct Knobs {
  int workers = 2, batch = 3;
  std::string memory = "256MiB", block = "2MiB", whole = "4MiB", mel = {}, write = {};
};

// `before` comes between read and decode, `behind` between decode and segment.
std::string pipeline(const Knobs& k, const std::string& before, const std::string& behind,
                     const std::string& last) {
  return fmt::format(
      R"(version: 1
workers: {}
memory: {{host: {}}}
graph:
  files: {{stage: file_list, root: "${{DATA}}", labels: parent_dir}}
  read: {{stage: disk_read, from: files, whole: {}}}
{}  decode: {{stage: decode, from: {}, block: {}}}
{}  segment: {{stage: segment, from: {}}}
  batch: {{stage: batch, from: segment, files: {}}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 20{}}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", overwrite: true{}}}
)",
      k.workers, k.memory, k.whole, before, before.empty() ? "read" : "takes", k.block, behind,
      last, k.batch, k.mel, k.write);
}
std::string plain(const Knobs& k) {
  return pipeline(k, "", "  resample: {stage: resample, from: decode, rate: 16000}\n", "resample");
}
std::string speeds(const Knobs& k) {
  return pipeline(k, "  takes: {stage: repeat, from: read, times: 3}\n",
                  "  speed: {stage: speed, from: decode, factors: [0.9, 1, 1.25]}\n"
                  "  resample: {stage: resample, from: speed, rate: 16000}\n",
                  "resample");
}
std::string stretches(const Knobs& k) {
  return pipeline(
      k, "",
      "  sound: {stage: mark_sound, from: decode, threshold: -40dB, frame: 400, hop: 160, "
      "keep: 50ms, silence: 200ms}\n"
      "  parts: {stage: segments_by, from: sound}\n",
      "parts");
}

struct Result {
  std::int64_t rows = 0;
  std::map<std::string, int> number;
  std::vector<double> seconds;
};
std::vector<Result> results_of(const FeatureFile::Entry& entry) {
  std::vector<Result> out;
  if (entry.results.empty()) return out;
  for (const auto& r : nlohmann::json::parse(entry.results)) {
    Result one{r.at("rows"), r.at("number"), {}};
    if (r.contains("seconds")) one.seconds = r.at("seconds").get<std::vector<double>>();
    out.push_back(std::move(one));
  }
  return out;
}

struct Recording {
  std::string name;
  AudioKind kind;
  std::vector<float> samples;
};

// Recordings of 5 s, and of 40 s, which is several blocks; as 16-bit WAV and FLAC.
std::vector<Recording> corpus() {
  return {{"a/short.wav", audio_kind("wav s16"), test_signal(5 * kRate, 1, 1)},
          {"a/long.flac", audio_kind("flac s16"), test_signal(40 * kRate, 1, 2)},
          {"b/mid.wav", audio_kind("wav s16"), test_signal(11 * kRate + 77, 1, 3)}};
}

// Returns the hash of all rows of each file, for float32 outputs.
std::vector<std::uint64_t> rows_hashes(const FeatureFile& file) {
  std::vector<std::uint64_t> out;
  for (const FeatureFile::Entry& e : file.files()) {
    const std::vector<float> rows =
        file.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
    out.push_back(
        rows.empty() ? 0 : RowHash::of(rows.data(), rows.size(), NumberType::float32, file.type()));
  }
  return out;
}
std::vector<std::uint64_t> stored_hashes(const FeatureFile& file) {
  std::vector<std::uint64_t> out;
  for (const FeatureFile::Entry& e : file.files()) out.push_back(e.rows_hash);
  return out;
}

void check_ok(const JobResult& job) { REQUIRE_MESSAGE(job.complete(), job.text()); }

}  // namespace

TEST_CASE(
    "results: variants of a recording have the rows of files with the same samples and rates") {
  const TempFolder folder;
  for (const Recording& r : corpus()) {
    write_audio(folder.file("clips/" + r.name), r.kind, kRate, r.samples);
    for (const double f : kFactors)
      write_audio(folder.file(fmt::format("{}/{}", f, r.name)), r.kind,
                  static_cast<int>(std::lround(kRate * f)), r.samples);
  }
  const auto with = [](auto change) {
    Knobs k;
    change(k);
    return k;
  };
  const Knobs all[] = {
      {},
      with([](Knobs& k) { k.workers = 4; }),
      with([](Knobs& k) { k.block = "64KiB", k.workers = 3; }),
      with([](Knobs& k) { k.block = "64KiB", k.whole = "64KiB"; }),
      with([](Knobs& k) { k.block = k.whole = "64KiB", k.memory = "8MiB", k.batch = 1; }),
      with([](Knobs& k) { k.mel = ", log: db, top_db: 40", k.block = "128KiB"; }),
      with([](Knobs& k) { k.write = ", statistics: all, dtype: float16"; })};
  for (const Knobs& k : all) {
    CAPTURE(k.block);
    CAPTURE(k.memory);
    CAPTURE(k.mel);
    CAPTURE(k.write);
    std::vector<Output> expected;
    for (const double f : kFactors) {
      check_ok(run_job(plain(k), in_out(folder / fmt::format("{}", f), folder / "plain.h5")));
      expected.push_back(read_output(folder / "plain.h5"));
    }
    check_ok(run_job(speeds(k), in_out(folder / "clips", folder / "out.h5")));
    const Output out = read_output(folder / "out.h5");
    const FeatureFile file(folder / "out.h5");
    REQUIRE(file.files().size() == 3);
    for (const FeatureFile::Entry& e : file.files()) {
      CAPTURE(e.path);
      const std::vector<Result> results = results_of(e);
      REQUIRE(results.size() == kFactors.size());
      std::vector<float> rows;
      for (std::size_t i = 0; i < results.size(); ++i) {
        const std::vector<float> own = expected[i].rows_of(e.path);
        CHECK(results[i].rows == expected[i].file(e.path).count);
        CHECK(results[i].number == std::map<std::string, int>{{"takes", static_cast<int>(i)}});
        rows.insert(rows.end(), own.begin(), own.end());
      }
      CHECK(out.rows_of(e.path) == rows);
      CHECK(file.labels().at(static_cast<std::size_t>(e.label)) == e.path.substr(0, 1));
    }
    // The hash of a file's rows covers all of them.
    CHECK(rows_hashes(file) == stored_hashes(file));
  }
}

TEST_CASE("results: stretches that a stage marks have the rows of files with these samples") {
  const TempFolder folder;
  // Tones with silence between them: [samples] of sound, of silence, and so on.
  const std::vector<std::vector<int>> patterns{
      {8000, 9000, 4000, 2000, 6000, 30000, 1600}, {300000, 8000, 270000}, {0, 20000, 5000, 5000}};
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> expected;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    std::vector<float> samples;
    for (std::size_t i = 0; i < patterns[p].size(); ++i) {
      std::vector<float> part(static_cast<std::size_t>(patterns[p][i]), 0.0F);
      if (i % 2 == 0) part = test_signal(patterns[p][i], 1, static_cast<unsigned>(i + 1));
      samples.insert(samples.end(), part.begin(), part.end());
    }
    const std::string name = fmt::format("{}.wav", p);
    write_audio(folder.file("clips/" + name), audio_kind("wav s16"), kRate, samples);
    const std::vector<std::int16_t> stored = read_audio(folder / ("clips/" + name)).int16;
    // A frame of 400 around every 160th sample, above -40 dB; 800 more on each side, gaps of 3200.
    const auto n = static_cast<std::int64_t>(stored.size());
    auto& own = expected[name];
    for (std::int64_t f = 0; f * 160 <= n; ++f) {
      double sum = 0;
      for (std::int64_t i = std::max<std::int64_t>(0, f * 160 - 200);
           i < std::min(n, f * 160 + 200); ++i)
        sum += std::pow(stored[static_cast<std::size_t>(i)] / 32768.0, 2);
      if (sum / 400 <= 1e-4) continue;
      const std::int64_t begin = std::max<std::int64_t>(0, f * 160 - 800),
                         end = (f + 1) * 160 + 800;
      if (own.empty() || begin - own.back().second >= 3200) own.push_back({begin, end});
      own.back().second = std::min(n, end);
    }
    for (std::size_t i = 0; i < own.size(); ++i)
      write_audio(
          folder.file(fmt::format("parts/{}-{}.wav", p, i)), audio_kind("wav s16"), kRate,
          std::vector<float>(samples.begin() + own[i].first, samples.begin() + own[i].second));
  }
  CHECK(expected["0.wav"].size() == 3);
  CHECK(expected["1.wav"].size() == 2);
  check_ok(run_job(plain({}), in_out(folder / "parts", folder / "parts.h5")));
  const Output parts = read_output(folder / "parts.h5");
  std::string bytes;
  for (const char* block : {"2MiB", "64KiB", "96KiB"})
    for (const int workers : {1, 4}) {
      Knobs k;
      k.block = block;
      k.workers = workers;
      if (workers == 1) k.memory = k.block == "2MiB" ? "48MiB" : "16MiB";
      k.whole = k.block;
      CAPTURE(k.block);
      CAPTURE(k.workers);
      check_ok(run_job(stretches(k), in_out(folder / "clips", folder / "out.h5")));
      const Output out = read_output(folder / "out.h5");
      const FeatureFile file(folder / "out.h5");
      for (const FeatureFile::Entry& e : file.files()) {
        CAPTURE(e.path);
        const auto& own = expected.at(e.path);
        const std::vector<Result> results = results_of(e);
        REQUIRE(results.size() == own.size());
        std::vector<float> rows;
        for (std::size_t i = 0; i < own.size(); ++i) {
          const std::string part = fmt::format("{}-{}.wav", e.path.substr(0, 1), i);
          const std::vector<float> of_part = parts.rows_of(part);
          rows.insert(rows.end(), of_part.begin(), of_part.end());
          CHECK(results[i].rows == parts.file(part).count);
          REQUIRE(results[i].seconds.size() == 2);
          CHECK(results[i].seconds[0] ==
                doctest::Approx(static_cast<double>(own[i].first) / 16000));
          CHECK(results[i].seconds[1] ==
                doctest::Approx(static_cast<double>(own[i].second) / 16000));
        }
        CHECK(out.rows_of(e.path) == rows);
      }
      CHECK(rows_hashes(file) == stored_hashes(file));
      if (bytes.empty()) bytes = out.mel_bytes;
      CHECK(out.mel_bytes == bytes);
    }
}

TEST_CASE("results: channels have the rows of mono files, and may be repeated") {
  const TempFolder folder;
  for (const int n : {2, 30}) {
    const std::vector<float> both = test_signal(n * std::int64_t{kRate}, 2, 7);
    write_audio(folder.file(fmt::format("clips/{}.wav", n)), audio_kind("wav s16 stereo"), kRate,
                both);
    std::vector<float> one[2];
    for (std::size_t s = 0; s < both.size(); ++s) one[s % 2].push_back(both[s]);
    for (int c = 0; c < 2; ++c)
      write_audio(folder.file(fmt::format("{}/{}.wav", c, n)), audio_kind("wav s16"), kRate,
                  one[c]);
  }
  write_audio(folder.file("clips/mono.wav"), audio_kind("wav s16"), kRate, test_signal(20000));
  Knobs k;
  k.block = "64KiB";
  std::vector<Output> alone;
  for (int c = 0; c < 2; ++c) {
    check_ok(run_job(plain(k), in_out(folder / std::to_string(c), folder / "alone.h5")));
    alone.push_back(read_output(folder / "alone.h5"));
  }
  for (const bool repeats : {false, true}) {
    CAPTURE(repeats);
    std::string yaml = pipeline(
        k, repeats ? "  takes: {stage: repeat, from: read, times: 2}\n" : "", "", "decode");
    yaml.replace(yaml.find("block: 64KiB"), 0, "downmix: each, ");
    check_ok(run_job(yaml, in_out(folder / "clips", folder / "out.h5")));
    const Output out = read_output(folder / "out.h5");
    const FeatureFile file(folder / "out.h5");
    for (const FeatureFile::Entry& e : file.files()) {
      CAPTURE(e.path);
      const std::vector<Result> results = results_of(e);
      if (e.path == "mono.wav") {
        CHECK(results.size() == (repeats ? 2 : 1));
        continue;
      }
      REQUIRE(results.size() == (repeats ? 4 : 2));
      std::vector<float> rows;
      for (std::size_t i = 0; i < results.size(); ++i) {
        std::map<std::string, int> number{{"decode", static_cast<int>(i % 2)}};
        if (repeats) number["takes"] = static_cast<int>(i / 2);
        CHECK(results[i].number == number);
        const std::vector<float> own = alone[i % 2].rows_of(e.path);
        rows.insert(rows.end(), own.begin(), own.end());
      }
      CHECK(out.rows_of(e.path) == rows);
    }
  }
}

TEST_CASE("results: an update keeps those that are there, and .npy has them as well") {
  const TempFolder folder;
  for (const Recording& r : corpus())
    write_audio(folder.file("clips/" + r.name), r.kind, kRate, r.samples);
  Knobs k;
  k.write = ", max_dropped: 100%";
  const std::string yaml = speeds(k);
  check_ok(run_job(yaml, in_out(folder / "clips", folder / "updated.h5")));
  write_audio(folder.file("clips/a/new.wav"), audio_kind("wav s16"), kRate, test_signal(30000));
  std::filesystem::remove(folder / "clips/b/mid.wav");
  check_ok(run_job(yaml, in_out(folder / "clips", folder / "updated.h5"), {}, Update::append));
  check_ok(run_job(yaml, in_out(folder / "clips", folder / "fresh.h5")));
  std::string npy = yaml;
  npy.replace(npy.find("hdf5_write"), 10, "npy_write");
  check_ok(run_job(npy, in_out(folder / "clips", folder / "out.npy")));
  const FeatureFile updated(folder / "updated.h5"), fresh(folder / "fresh.h5"),
      array(folder / "out.npy");
  REQUIRE(fresh.files().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(results_of(fresh.files()[i]).size() == 3);
    CHECK(updated.files()[i].path == fresh.files()[i].path);
    CHECK(updated.files()[i].results == fresh.files()[i].results);
    CHECK(array.files()[i].results == fresh.files()[i].results);
    CHECK(read_output(folder / "updated.h5").rows_of(fresh.files()[i].path) ==
          read_output(folder / "fresh.h5").rows_of(fresh.files()[i].path));
  }
}

TEST_CASE(
    "results: concat puts those of several branches side by side, batches has each as a sample") {
  const TempFolder folder;
  for (const Recording& r : corpus())
    write_audio(folder.file("clips/" + r.name), r.kind, kRate, r.samples);
  Knobs k;
  k.block = "64KiB";
  k.workers = 4;
  std::string yaml = speeds(k);
  yaml +=
      "  wide: {stage: mel, from: batch, sample_rate: 16000, n_fft: 1024, hop: 160, n_mels: 30, "
      "normalize: per_feature}\n"
      "  both: {stage: concat, from: [mel, wide]}\n"
      "  both_h5: {stage: hdf5_write, from: both, path: \"${OUT}.both.h5\", overwrite: true}\n"
      "  wide_h5: {stage: hdf5_write, from: wide, path: \"${OUT}.wide.h5\", overwrite: true}\n"
      "  samples: {stage: batches, from: both, size: 4}\n";
  const JobResult job = run_job(yaml, in_out(folder / "clips", folder / "out.h5"));
  check_ok(job);
  const FeatureFile mel(folder / "out.h5"), wide(folder / "out.h5.wide.h5"),
      both(folder / "out.h5.both.h5");
  REQUIRE(both.rows() == mel.rows());
  const std::vector<float> left = mel.read_rows(0, mel.rows()),
                           right = wide.read_rows(0, mel.rows()),
                           all = both.read_rows(0, mel.rows());
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < mel.rows(); ++r)
    wrong += std::equal(&left[r * 20], &left[r * 20] + 20, &all[r * 50]) &&
                     std::equal(&right[r * 30], &right[r * 30] + 30, &all[r * 50 + 20])
                 ? 0
                 : 1;
  CHECK(wrong == 0);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(results_of(both.files()[i]).size() == 3);
    CHECK(both.files()[i].results == mel.files()[i].results);
  }
  const auto& summary = job.stage("samples").summary;
  const auto samples = std::find_if(summary.begin(), summary.end(),
                                    [](const auto& entry) { return entry.first == "samples"; });
  REQUIRE(samples != summary.end());
  CHECK(samples->second.text() == "9");
}

TEST_CASE("results: what cannot be is refused with the way out") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 16000);
  const auto refused = [&](const std::string& yaml) -> std::string {
    try {
      run_job(yaml, in_out(folder / "clips", folder / "out.h5"));
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  const auto check = [&](const std::string& before, const std::string& behind,
                         const std::string& last, const std::string& message) {
    const std::string why = refused(pipeline({}, before, behind, last));
    CHECK_MESSAGE(why.find(message) != std::string::npos, why);
  };
  const std::string repeat = "  takes: {stage: repeat, from: read, times: 3}\n";
  check(
      "",
      "  speed: {stage: speed, from: decode, factors: [0.9, 1.1]}\n"
      "  resample: {stage: resample, from: speed, rate: 16000}\n",
      "resample",
      "speed.factors: are for the results of a repeat, and there is none before this node; put one "
      "with times: 2 before decode");
  check(repeat,
        "  speed: {stage: speed, from: decode, factors: [0.9, 1.1]}\n"
        "  resample: {stage: resample, from: speed, rate: 16000}\n",
        "resample", "speed.factors: has 2 numbers, but repeat gives 3 results; write as many");
  check(repeat,
        "  speed: {stage: speed, from: decode, factors: [0, 1, 1.1]}\n"
        "  resample: {stage: resample, from: speed, rate: 16000}\n",
        "resample", "speed.factors: write a list of numbers from 0.25 to 4, such as [0.9, 1, 1.1]");
  check(repeat, "  speed: {stage: speed, from: decode, factors: [0.9, 1, 1.1]}\n", "speed",
        "speed: changes the sample rate, and nothing behind it brings that back; put a node of the "
        "stage resample behind it");
  check(
      "", "  parts: {stage: segments_by, from: decode}\n", "parts",
      "parts.from: nothing is marked in what comes; take from a node that marks stretches, such as "
      "mark_sound");
  check("",
        "  sound: {stage: mark_sound, from: decode}\n"
        "  resample: {stage: resample, from: sound, rate: 16000}\n"
        "  parts: {stage: segments_by, from: resample}\n",
        "parts", "parts.from: nothing is marked in what comes");
  check(repeat, "  long: {stage: filter, from: decode, where: {duration: \"> 1s\"}}\n", "long",
        "long.from: filter takes whole recordings, but takes (repeat) before it makes several "
        "items of each; write another decode node, {stage: decode, from: read}, and name that in "
        "long.from");
}

TEST_CASE("results: a recording in which nothing is marked is skipped") {
  const TempFolder folder;
  write_audio(folder.file("clips/silent.wav"), audio_kind("wav s16"), kRate,
              std::vector<float>(200000, 0.0F));
  write_wav(folder.file("clips/sound.wav"), 50000);
  const JobResult job = run_job(stretches({}), in_out(folder / "clips", folder / "out.h5"));
  check_ok(job);
  CHECK(job.remarks_by_name() == std::map<std::string, std::string>{
                                     {"silent.wav", "skipped: parts: no stretch of it is marked"}});
  CHECK(FeatureFile(folder / "out.h5").files()[0].results.empty());
}

TEST_CASE("results: stretches are found at any rate, also behind speed") {
  const TempFolder folder;
  std::vector<int> rates{8000, 48000, 88200, 96000, 192000, 384000, 500000};
  for (const int rate : rates) {
    std::vector<float> signal(static_cast<std::size_t>(rate));
    for (std::size_t i = 0; i < signal.size(); ++i)  // a second, silent in its middle half
      if (i < signal.size() / 4 || i >= signal.size() / 4 * 3)
        signal[i] =
            0.5F * std::sin(1000.0F * 6.2832F * static_cast<float>(i) / static_cast<float>(rate));
    write_audio(folder.file(fmt::format("clips/{}.wav", rate)), audio_kind("wav s16"), rate,
                signal);
  }
  const std::string sound =
      "  sound: {stage: mark_sound, from: SOURCE, frame: 25ms, hop: 10ms, keep: 50ms, silence: "
      "100ms}\n"
      "  parts: {stage: segments_by, from: sound}\n"
      "  resample: {stage: resample, from: parts, rate: 16000}\n";
  const auto behind = [&sound](const std::string& source) {
    return std::string(sound).replace(sound.find("SOURCE"), 6, source);
  };
  const JobResult plain = run_job(pipeline({}, "", behind("decode"), "resample"),
                                  in_out(folder / "clips", folder / "a.h5"));
  check_ok(plain);
  const FeatureFile a(folder / "a.h5");
  for (const auto& entry : a.files()) CHECK(results_of(entry).size() == 2);
  const JobResult fast = run_job(
      pipeline({}, "  takes: {stage: repeat, from: read, times: 3}\n",
               "  speed: {stage: speed, from: decode, factors: [0.9, 1, 1.25]}\n" + behind("speed"),
               "resample"),
      in_out(folder / "clips", folder / "b.h5"));
  check_ok(fast);
  const FeatureFile b(folder / "b.h5");
  for (const auto& entry : b.files()) CHECK(results_of(entry).size() == 6);
}

}  // namespace results_test
