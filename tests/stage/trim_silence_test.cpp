#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "stages/facts.h"
#include "tests/stage/bench.h"
#include "tests/support/printing.h"
#include "tests/support/source_path.h"

namespace melflow::test::trim_silence_test {
namespace {

constexpr int kRate = 16'000;
using Shorts = std::vector<std::int16_t>;

// Stretches of [samples, shift]: draws of the generator of tests/golden/signals.py, or zeros.
Shorts stretches(const std::vector<std::pair<int, int>>& list) {
  std::uint64_t state = 4;
  Shorts out;
  for (const auto& [count, shift] : list)
    for (int i = 0; i < count; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto draw = static_cast<std::int16_t>(state >> 48);
      out.push_back(shift >= 16 ? std::int16_t{0} : static_cast<std::int16_t>(draw >> shift));
    }
  return out;
}

std::vector<float> floats(const Shorts& in) {
  std::vector<float> out;
  for (const std::int16_t s : in) out.push_back(static_cast<float>(s) / 32768.0F);
  return out;
}

struct Trimmed {
  Streamed<Waveform> stream;
  Shorts samples;
  [[nodiscard]] const Ledger::Entry& entry() const { return stream.entry; }
};

Trimmed trimmed(const Shorts& in, const std::string& options, std::int64_t block = 0,
                int rate = kRate) {
  Bench bench("trim_silence", "{" + options + "}");
  const Planned plan = bench.plan();
  REQUIRE_MESSAGE(plan.errors.empty(), fmt::format("{}", plan.errors.front()));
  Trimmed out{bench.stream<Waveform>(waveform(in, rate, block)), {}};
  if (out.stream.ok()) out.samples = joined<std::int16_t>(out.stream.blocks);
  // With float samples the same part is kept.
  Bench other("trim_silence", "{" + options + "}");
  other.plan();
  const auto as_float = other.stream<Waveform>(waveform(floats(in), rate, block));
  CHECK(as_float.entry.reason == out.entry().reason);
  if (out.stream.ok()) CHECK(joined<float>(as_float.blocks) == floats(out.samples));
  return out;
}

Shorts part(const Shorts& in, std::int64_t begin, std::int64_t end) {
  return {in.begin() + begin, in.begin() + end};
}

}  // namespace

// tests/golden/make_trim.py stored librosa's results.
TEST_CASE("trim_silence: leaves what librosa.effects.trim leaves, in blocks of any size") {
  std::ifstream file(source_path("tests/golden/trim.json"));
  REQUIRE(file);
  const auto golden = nlohmann::json::parse(file);
  int by_level = 0, by_peak = 0, nothing = 0;
  for (const auto& c : golden) {
    CAPTURE(c.at("name").get<std::string>());
    const auto& given = c.at("options");
    const bool has_level = given.contains("ref");
    (has_level ? by_level : by_peak) += 1;
    const double top_db = given.value("top_db", 60.0);
    const std::string options = fmt::format(
        "{}, frame: {}, hop: {}",
        has_level ? fmt::format("threshold: {}dB", -top_db) : fmt::format("top_db: {}", top_db),
        given.value("frame_length", 2048), given.value("hop_length", 512));
    const Shorts in = stretches(c.at("stretches").get<std::vector<std::pair<int, int>>>());
    const auto begin = c.at("begin").get<std::int64_t>(), end = c.at("end").get<std::int64_t>();
    for (const std::int64_t block : {0, 1, 97, 512, 4096, 5000}) {
      if (block == 1 && in.size() > 3000) continue;
      CAPTURE(block);
      const Trimmed got = trimmed(in, options, block);
      if (begin == end) {
        nothing += 1;
        CHECK(got.entry().outcome == Outcome::skipped);
        CHECK(got.entry().reason ==
              fmt::format("is silent: nothing of it is left (threshold {}dB)", -top_db));
        continue;
      }
      REQUIRE_MESSAGE(got.stream.ok(), got.entry().reason);
      CHECK(got.entry().reason == "");
      CHECK(got.samples == part(in, begin, end));
    }
  }
  CHECK(by_level >= 10);
  CHECK(by_peak >= 10);
  CHECK(nothing > 0);
}

TEST_CASE("trim_silence: keep and hold are as defined, in blocks of any size") {
  std::mt19937 random(5);
  const auto between = [&random](int lowest, int highest) {
    return lowest + static_cast<int>(random() % static_cast<unsigned>(highest - lowest + 1));
  };
  int cut = 0, kept_by_hold = 0, silent = 0;
  for (int round = 0; round < 1500; ++round) {
    const int frame = between(1, 40), hop = between(1, 30), keep = between(0, 1) * between(0, 50);
    const int hold = frame + hop + keep + between(0, 150);
    std::vector<std::pair<int, int>> list;
    for (int i = between(1, 5); i > 0; --i)
      list.emplace_back(between(1, 200), between(0, 2) == 0 ? 3 : 16);
    const Shorts in = stretches(list);
    const auto n = static_cast<std::int64_t>(in.size());
    // A frame has sound where its mean square, with zeros around the recording, is above -40 dB.
    std::int64_t begin = -1, sound_end = 0;
    for (std::int64_t i = 0; i * hop - frame / 2 + frame <= n + frame / 2; ++i) {
      double sum = 0;
      for (std::int64_t s = i * hop - frame / 2; s < i * hop - frame / 2 + frame; ++s)
        if (s >= 0 && s < n) sum += std::pow(in[static_cast<std::size_t>(s)] / 32768.0, 2);
      if (sum / frame <= 1e-4) continue;
      if (begin < 0) begin = std::max<std::int64_t>(0, i * hop - keep);
      sound_end = std::min<std::int64_t>(n, (i + 1) * hop + keep);
    }
    const std::int64_t end = std::max(sound_end, n - hold);
    const std::string options = fmt::format(
        "threshold: -40dB, frame: {}, hop: {}, keep: {}, hold: {}", frame, hop, keep, hold);
    CAPTURE(options);
    CAPTURE(n);
    for (const std::int64_t block : {0, between(1, 20), between(20, 300)}) {
      CAPTURE(block);
      const Trimmed got = trimmed(in, options, block);
      if (begin < 0 || begin >= end) {
        silent += 1;
        CHECK(got.entry().outcome == Outcome::skipped);
        continue;
      }
      REQUIRE_MESSAGE(got.stream.ok(), got.entry().reason);
      CHECK(got.samples == part(in, begin, end));
      CHECK(got.entry().reason.empty() == (end <= sound_end));
      cut += end < n || begin > 0 ? 1 : 0;
      kept_by_hold += end > sound_end ? 1 : 0;
    }
  }
  CHECK(cut > 500);
  CHECK(kept_by_hold > 50);
  CHECK(silent > 50);
}

TEST_CASE("trim_silence: a silence at the end that is longer than hold is named") {
  const Shorts in = stretches({{8000, 3}, {40'000, 16}});
  for (const std::int64_t block : {0, 1000}) {
    const Trimmed got = trimmed(in, "threshold: -40dB, hold: 1s", block);
    CHECK(got.entry().outcome == Outcome::ok);
    CHECK(got.samples.size() == 48'000 - 16'000);
    CHECK(got.entry().reason == "of 2.424 s of silence at the end only 1.000 s are cut off (hold)");
  }
}

TEST_CASE("trim_silence: by the loudest frame, a recording is no longer than hold") {
  const Shorts in = stretches({{4000, 16}, {8000, 3}, {4001, 16}});
  for (const std::int64_t block : {0, 1000, 15'999, 16'000}) {
    CAPTURE(block);
    const Trimmed got = trimmed(in, "top_db: 40, hold: 1s", block);
    CHECK(got.entry().outcome == Outcome::failed);
    CHECK(got.entry().reason ==
          "is longer than hold: more than 16000 samples, and top_db needs the whole recording; "
          "make hold longer, or use threshold");
    CHECK(trimmed(part(in, 0, 16'000), "top_db: 40, hold: 1s", block).entry().outcome ==
          Outcome::ok);
  }
}

TEST_CASE("trim_silence: blocks take no more than their bound") {
  for (const char* options : {"threshold: -40dB, hold: 5000", "top_db: 40, hold: 50000"}) {
    CAPTURE(std::string(options));
    const Shorts in = stretches({{9000, 16}, {100, 3}, {4000, 16}, {10'000, 3}, {9000, 16}});
    for (const std::int64_t block : {100, 3000, 50'000}) {
      CAPTURE(block);
      Bench bench("trim_silence", "{" + std::string(options) + "}");
      REQUIRE(bench.plan().errors.empty());
      const auto given = waveform(floats(in), kRate, block);
      const auto got = bench.stream<Waveform>(given);
      REQUIRE(got.ok());
      CHECK(got.blocks.size() == given.size());
      const std::size_t bound = bench.stage().output_bound(
          {"a.wav", 0}, BufferPool::rounded(static_cast<std::size_t>(block) * sizeof(float)));
      for (const auto& b : got.blocks) {
        CHECK(buffer_of(b->samples).size() <= bound);
        CHECK(b->sample_rate == kRate);
      }
    }
  }
}

TEST_CASE("trim_silence: what is silent is said in one way, and lengths fit into hold") {
  const auto errors = [](const std::string& options, double rate = 0) {
    Bench bench("trim_silence", "{" + options + "}");
    Properties given;
    if (rate > 0) given.set(property::kSampleRate, rate);
    return bench.plan(given).errors;
  };
  using List = std::vector<std::string>;
  CHECK(errors("") ==
        List{": neither threshold nor top_db is set; set threshold: -40dB (a level) or "
             "top_db: 60 (below the loudest frame)"});
  CHECK(errors("threshold: -40, top_db: 60") ==
        List{"top_db: threshold and top_db are both given; remove one"});
  CHECK(errors("threshold: -40 dB") == List{});
  CHECK(errors("top_db: 60, frame: 0") == List{"frame: a frame of no sample"});
  CHECK(errors("top_db: 60, hop: 0") == List{"hop: a hop of no sample"});
  CHECK(errors("top_db: 60, hop: 1us") == List{"hop: a hop of no sample"});
  CHECK(errors("top_db: 60, hold: 2000", 8000) ==
        List{"hold: is 2000 samples, but must be at least frame, hop and keep together (2560)"});
  CHECK(errors("top_db: 60, keep: 1s, hold: 1s", 8000) ==
        List{"hold: is 8000 samples, but must be at least frame, hop and keep together (10560)"});
  for (const char* options : {"threshold: 3dB", "threshold: loud", "threshold: -201dB",
                              "threshold: [-40]", "top_db: 0", "top_db: -60", "keep: -1"}) {
    CAPTURE(std::string(options));
    CHECK_THROWS_AS(Bench("trim_silence", "{" + std::string(options) + "}"), ConfigError);
  }
}

TEST_CASE("trim_silence: a recording of another rate than planned fails where lengths do not fit") {
  const Shorts in = stretches({{400, 3}});
  CHECK(trimmed(in, "threshold: -40dB, frame: 20ms, hop: 1ms", 0, 400).entry().reason ==
        "is sampled at 400 Hz, where a hop is less than one sample");
  CHECK(trimmed(in, "threshold: -40dB, frame: 1ms, hop: 1s", 0, 400).entry().reason ==
        "is sampled at 400 Hz, where a frame is less than one sample");
  // Without a known rate, the amount that may be held is computed for 48 kHz.
  CHECK(trimmed(in, "threshold: -40dB, frame: 400ms, hop: 200ms, hold: 1s", 0, 96'000)
            .entry()
            .reason ==
        "is sampled at 96000 Hz, where frame, hop and keep are longer than the 48000 samples that "
        "may be held; put a resample stage before this node");
  CHECK(trimmed(in, "threshold: -40dB, frame: 400ms, hop: 200ms, hold: 1s", 0, 48'000)
            .entry()
            .outcome == Outcome::ok);
}

TEST_CASE("trim_silence: settings are in samples where the rate is known") {
  const auto settings = [](const std::string& options, double rate) {
    Bench bench("trim_silence", "{" + options + "}");
    Properties given;
    if (rate > 0) given.set(property::kSampleRate, rate);
    REQUIRE(bench.plan(given).errors.empty());
    return to_json(*bench.stage().settings());
  };
  CHECK(settings("threshold: -40, frame: 128ms, hop: 32ms, keep: 50ms, hold: 2s", 16'000) ==
        settings("threshold: -40dB, keep: 800, hold: 32000", 16'000));
  CHECK(settings("threshold: -40, frame: 128ms", 0) != settings("threshold: -40", 0));
  CHECK(settings("threshold: -40, keep: 10ms", 0) != settings("threshold: -40", 0));
}

}  // namespace melflow::test::trim_silence_test
