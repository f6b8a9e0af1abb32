// Computed recordings: their samples by definition, their names, labels and frequencies, and that
// they do not depend on how they are computed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "stages/audio/fixed_sine.h"
#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/sha256.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::synthetic_test {
namespace {

using Shorts = std::vector<std::int16_t>;

LoadOptions into(const std::string& out) {
  LoadOptions options;
  options.vars = {{"OUT", out}};
  return options;
}

std::string writing(const std::string& options, const std::string& memory = "256MiB",
                    int workers = 2) {
  return fmt::format(R"(version: 1
workers: {}
memory: {{host: {}}}
graph:
  tones: {{stage: synthetic, {}}}
  write: {{stage: audio_write, from: tones, path: "${{OUT}}", overwrite: true}}
)",
                     workers, memory, options);
}

Shorts made(const TempFolder& folder, const std::string& options, const std::string& name,
            int workers = 2) {
  completed(run_job(writing(options, "256MiB", workers), into(folder / "out")));
  return read_audio(folder / "out/" + name + ".wav").int16;
}

std::string hash_of(const Shorts& samples) {
  std::vector<std::uint8_t> bytes;
  for (const std::int16_t s : samples) {
    bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint16_t>(s) & 0xFF));
    bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint16_t>(s) >> 8));
  }
  return reference::sha256(std::move(bytes));
}

// Counts samples that are not the nearest integer, except for exact values near a half.
std::size_t wrong(const Shorts& got, double amplitude, const std::vector<long double>& turns) {
  REQUIRE(got.size() == turns.size());
  std::size_t out = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double exact = amplitude * std::sin(2 * std::numbers::pi_v<long double> * turns[i]);
    out += std::abs(static_cast<long double>(got[i]) - exact) > 0.501L ? 1 : 0;
  }
  return out;
}

}  // namespace

// tests/golden/make_synthetic.py computed them by the same definition in another language.
TEST_CASE("synthetic: samples are those of the definition, bit for bit") {
  std::ifstream file(source_path("tests/golden/synthetic.json"));
  REQUIRE(file);
  const auto golden = nlohmann::json::parse(file);
  CHECK(golden.size() == 14);
  const TempFolder folder;
  for (const auto& c : golden) {
    const std::string options = c.at("options").dump().substr(1);
    CAPTURE(options);
    const std::string name = c.at("name");
    CAPTURE(name);
    const Shorts got = made(folder, options.substr(0, options.size() - 1), name);
    CHECK(got.size() == c.at("samples").get<std::size_t>());
    CHECK(hash_of(got) == c.at("sha256").get<std::string>());
  }
}

TEST_CASE(
    "synthetic: a tone is the sine of its frequency, a sweep that of one which grows evenly") {
  const TempFolder folder;
  const int n = 40'000;
  std::vector<long double> turns(n);
  for (int i = 0; i < n; ++i)
    turns[static_cast<std::size_t>(i)] = std::fmod(440.25L * i / 16'000, 1);
  CHECK(
      wrong(made(folder, "low: 440.25, high: 440.25, duration: 2.5s, amplitude: 1", "tone/000000"),
            32767, turns) == 0);
  for (int i = 0; i < n; ++i) {
    const long double sum = 100.0L * i + 7900.0L / n * (static_cast<long double>(i) * (i - 1) / 2);
    turns[static_cast<std::size_t>(i)] = std::fmod(sum / 16'000, 1);
  }
  CHECK(wrong(made(folder, "kind: sweep, low: 100, high: 8000, duration: 40000, amplitude: 1",
                   "sweep/000000"),
              32767, turns) == 0);
}

TEST_CASE("synthetic: the sine of whole numbers is nowhere far from the true one") {
  double worst = 0;
  for (std::uint64_t i = 0; i <= 200'000; ++i) {
    const std::uint64_t phase = i * 92'233'720'368'547ULL + i % 7;
    const double exact = 32767 * std::sin(static_cast<double>(phase) / 0x1p63 * std::numbers::pi);
    worst = std::max(worst, std::abs(fixed_sine(phase, 32767) - exact));
  }
  CHECK(worst < 0.5001);
  CHECK(fixed_sine(0, 32767) == 0);
  CHECK(fixed_sine(1ULL << 62, 32767) == 32767);
  CHECK(fixed_sine(1ULL << 63, 32767) == 0);
  CHECK(fixed_sine(3ULL << 62, 32767) == -32767);
}

TEST_CASE("synthetic: noise is white, and loud as a uniform one is") {
  const TempFolder folder;
  const Shorts got = made(folder, "kind: noise, duration: 200000, amplitude: 1", "noise/000000");
  double sum = 0, squares = 0, neighbours = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    sum += got[i];
    squares += std::pow(got[i], 2);
    if (i > 0) neighbours += static_cast<double>(got[i]) * got[i - 1];
  }
  const auto n = static_cast<double>(got.size());
  const double variance = 32767.0 * 32767.0 / 3;
  // Mean, variance and a correlation: six standard deviations each.
  CHECK(std::abs(sum / n) < 6 * std::sqrt(variance / n));
  CHECK(std::abs(squares / n / variance - 1) < 6 * std::sqrt(0.8 / n));
  CHECK(std::abs(neighbours / n / variance) < 6 / std::sqrt(n));
  CHECK(got !=
        made(folder, "kind: noise, count: 2, duration: 200000, amplitude: 1", "noise/000001"));
}

TEST_CASE("synthetic: a recording does not depend on the others, on blocks or on workers") {
  const TempFolder folder;
  for (const char* kind : {"tone", "sweep", "noise"}) {
    CAPTURE(std::string(kind));
    const std::string name = fmt::format("{}/000002", kind);
    const std::string options = fmt::format("kind: {}, duration: 20001, seed: 3", kind);
    const Shorts whole = made(folder, options + ", count: 3", name, 1);
    CHECK(whole.size() == 20'001);
    for (const int workers : {1, 3})
      CHECK(made(folder, options + ", count: 40, samples: {block: 4KiB, concurrency: 3}", name,
                 workers) == whole);
    CHECK(made(folder, fmt::format("kind: {}, duration: 20001, seed: 4, count: 3", kind), name) !=
          (std::string(kind) == "sweep" ? Shorts{} : whole));
  }
}

TEST_CASE("synthetic: kinds are taken in turn and are labels; a tone's frequency is its target") {
  const TempFolder folder;
  const JobResult job = completed(run_job(R"(version: 1
graph:
  tones: {stage: synthetic, kind: [tone, noise, silence], count: 7, duration: 1s, low: 300, high: 6000}
  segment: {stage: segment, from: tones}
  batch: {stage: batch, from: segment}
  mel: {stage: mel, from: batch, n_fft: 1024, hop: 256, n_mels: 128, log: db}
  write: {stage: hdf5_write, from: mel, path: "${OUT}"}
)",
                                          into(folder / "out.h5")));
  CHECK(job.report.counts.ok == 7);
  const FeatureFile out(folder / "out.h5");
  const Output rows = read_output(folder / "out.h5");
  CHECK(rows.labels == std::vector<std::string>{"noise", "silence", "tone"});
  REQUIRE(out.files().size() == 7);
  int tones = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    const FeatureFile::Entry& e = out.files()[i];
    CAPTURE(e.path);
    const char* kind = i % 3 == 0 ? "tone" : i % 3 == 1 ? "noise" : "silence";
    CHECK(e.path == fmt::format("{}/{:06}", kind, i));
    CHECK(rows.labels[static_cast<std::size_t>(rows.files[i].label)] == kind);
    CHECK(rows.files[i].duration == 1.0);
    REQUIRE(e.targets.size() == 1);
    CHECK(std::isnan(e.targets[0]) == (i % 3 != 0));
    if (i % 3 != 0) continue;
    // The loudest band of a frame in the middle is the one with the nearest centre.
    const std::vector<float> mel = rows.rows_of(e.path);
    const float* frame = mel.data() + 30 * 128;
    const auto loudest = std::max_element(frame, frame + 128) - frame;
    const auto nearest =
        std::min_element(rows.band_hz.begin(), rows.band_hz.end(),
                         [&](double a, double b) {
                           return std::abs(a - e.targets[0]) < std::abs(b - e.targets[0]);
                         }) -
        rows.band_hz.begin();
    CHECK(std::abs(loudest - nearest) <= 1);
    CHECK(e.targets[0] >= 300);
    CHECK(e.targets[0] <= 6000);
    ++tones;
  }
  CHECK(tones == 3);
}

TEST_CASE("synthetic: recordings longer than the memory budget go through in blocks") {
  const std::string yaml = R"(version: 1
memory: {host: 16MiB}
graph:
  tones: {stage: synthetic, kind: silence, count: 2, duration: 30min, rate: 48000}
  end: {stage: discard, from: tones}
)";
  const JobResult job = completed(run_job(yaml));
  CHECK(job.report.counts.ok == 2);
  const auto& said = job.stage("end").summary;
  CHECK(said[1].second.text() == "3600.000");
}

TEST_CASE("synthetic: what cannot be computed is refused before the run") {
  const auto refused = [](const std::string& options, const std::string& message) {
    CAPTURE(options);
    CHECK_THROWS_WITH_AS(run_job("version: 1\ngraph:\n  tones: {stage: synthetic, " + options +
                                 "}\n  end: {stage: discard, from: tones}\n"),
                         doctest::Contains(message.c_str()), ConfigError);
  };
  refused("low: 500, high: 400", "tones.high: is less than low");
  refused("low: 7500",
          "tones.low: is above high, which is 0.45 x rate (7200 Hz) by default; lower low, or set "
          "high");
  refused("high: 8000.5", "tones.high: a rate of 16000 Hz holds no frequency above 8000 Hz");
  refused("duration: 0", "tones.duration: recordings of no sample");
  refused("duration: 1us", "tones.duration: recordings of no sample");
  refused("kind: []", "tones.kind: is empty; name one, such as tone");
  refused("kind: music", "tones.kind: 'music' is not one of tone, sweep, noise, silence");
  refused("amplitude: 1.5", "tones.amplitude: 1.5 is out of range");
  const JobResult job = run_job(
      "version: 1\ngraph:\n  tones: {stage: synthetic}\n  end: {stage: discard, from: tones}\n", {},
      {}, Update::append);
  CHECK(job.error == "synthetic: there are no files that could be new; use melflow run instead");
}

TEST_CASE("synthetic: features depend on what changes samples, and not on how many there are") {
  const auto settings = [](const std::string& options) {
    const Plan plan = load_plan_text("version: 1\ngraph:\n  tones: {stage: synthetic, " + options +
                                         "}\n  end: {stage: discard, from: tones}\n",
                                     "test.yaml", {});
    return to_json(plan.nodes.back().stage->feature_settings());
  };
  CHECK(settings("count: 3") == settings("count: 4, duration: 16000, samples: {block: 4KiB}"));
  for (const char* other : {"kind: noise", "duration: 2s", "rate: 8000", "low: 90", "high: 700",
                            "amplitude: 0.25", "seed: 1"})
    CHECK_MESSAGE(settings("count: 3") != settings(other), other);
}

}  // namespace melflow::test::synthetic_test
