// Loudness against the synthetic cases of EBU Tech 3341 (version 4) and 3342 (version 4), generated
// from their text, within their tolerances. Not run are the cases of programme material, which the
// EBU gives as files: 7 and 8 of 3341, 5 and 6 of 3342.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "stages/quality/meter.h"

#include "tests/support/sanitized.h"

namespace melflow::test::loudness_test {
namespace {

constexpr int kRate = 48'000;

struct Stretch {
  double seconds, dbfs;
};

// A stereo sine of 1 kHz whose peak level changes, in phase in both channels.
std::vector<float> tones(const std::vector<Stretch>& stretches, int rate = kRate,
                         int channels = 2) {
  std::vector<float> out;
  double phase = 0;
  for (const Stretch& s : stretches)
    for (std::int64_t i = 0; i < std::llround(s.seconds * rate); ++i) {
      const double x = std::pow(10, s.dbfs / 20) * std::sin(phase);
      phase += 2 * std::numbers::pi * 1000 / rate;
      for (int c = 0; c < channels; ++c) out.push_back(static_cast<float>(x));
    }
  return out;
}

MeasureValues loudness_of(const std::vector<float>& samples, int rate = kRate, int channels = 2) {
  MeasureSet set;
  set.set();
  QualityMeter meter(set, {}, rate, channels);
  meter.push(samples.data(), static_cast<std::int64_t>(samples.size()) / channels);
  return *meter.finish(0);
}

void check_near(float value, double expected, double below, double above) {
  CHECK(value >= expected - below);
  CHECK(value <= expected + above);
}

}  // namespace

TEST_CASE("loudness: Tech 3341, cases 1 to 5, integrated and stationary") {
  if constexpr (kSanitized) return;  // minutes of sound, which the run without one measures
  struct Row {
    int number;
    std::vector<Stretch> stretches;
    double expected;
    bool is_stationary;
  };
  const Row rows[] = {
      {1, {{20, -23}}, -23, true},
      {2, {{20, -33}}, -33, true},
      {3, {{10, -36}, {60, -23}, {10, -36}}, -23, false},
      {4, {{10, -72}, {10, -36}, {60, -23}, {10, -36}, {10, -72}}, -23, false},
      {5, {{20, -26}, {20.1, -20}, {20, -26}}, -23, false},
  };
  for (const Row& row : rows)
    for (const int rate : {kRate, 44'100, 16'000}) {
      CAPTURE(row.number);
      CAPTURE(rate);
      const MeasureValues v = loudness_of(tones(row.stretches, rate), rate);
      check_near(v[Measure::loudness], row.expected, 0.1, 0.1);
      if (!row.is_stationary) continue;
      check_near(v[Measure::loudness_momentary], row.expected, 0.1, 0.1);
      check_near(v[Measure::loudness_short_term], row.expected, 0.1, 0.1);
    }
}

TEST_CASE("loudness: Tech 3341, case 6, five channels") {
  // -28 dBFS in L and R, -24 in C, -30 in Ls and Rs; also with a silent LFE.
  for (const bool has_lfe : {false, true}) {
    std::vector<float> samples;
    for (int i = 0; i < 20 * kRate; ++i) {
      const double x = std::sin(2 * std::numbers::pi * 1000 * i / kRate);
      const auto add = [&](double dbfs) {
        samples.push_back(static_cast<float>(std::pow(10, dbfs / 20) * x));
      };
      add(-28), add(-28), add(-24);
      if (has_lfe) add(0);  // which does not count
      add(-30), add(-30);
    }
    check_near(loudness_of(samples, kRate, has_lfe ? 6 : 5)[Measure::loudness], -23, 0.1, 0.1);
  }
}

TEST_CASE("loudness: Tech 3341, cases 9 and 12, short-term and momentary of alternating levels") {
  std::vector<Stretch> nine, twelve;
  for (int i = 0; i < 5; ++i) nine.insert(nine.end(), {{1.34, -20}, {1.66, -30}});
  for (int i = 0; i < 25; ++i) twelve.insert(twelve.end(), {{0.18, -20}, {0.22, -30}});
  check_near(loudness_of(tones(nine))[Measure::loudness_short_term], -23, 0.1, 0.1);
  check_near(loudness_of(tones(twelve))[Measure::loudness_momentary], -23, 0.1, 0.1);
}

TEST_CASE("loudness: Tech 3341, cases 10 and 13, the greatest value wherever a tone begins") {
  if constexpr (kSanitized) return;  // minutes of sound, which the run without one measures
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    const double silence = -200;
    const auto ten = tones({{i * 0.15, silence}, {3, -23}, {1, silence}});
    check_near(loudness_of(ten)[Measure::loudness_short_term], -23, 0.1, 0.1);
    const auto thirteen = tones({{i * 0.02, silence}, {0.4, -23}, {1, silence}});
    check_near(loudness_of(thirteen)[Measure::loudness_momentary], -23, 0.1, 0.1);
  }
}

TEST_CASE("loudness: Tech 3341, cases 11 and 14, tones that become louder") {
  if constexpr (kSanitized) return;  // minutes of sound, which the run without one measures
  std::vector<Stretch> eleven, fourteen;
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    const std::vector<Stretch> of_11{{i * 0.15, -200}, {3, -38.0 + i}, {3 - i * 0.15, -200}},
        of_14{{i * 0.02, -200}, {0.4, -38.0 + i}, {0.4 - i * 0.02, -200}};
    // What a meter should show one after the other are the values of recordings of one tone.
    check_near(loudness_of(tones(of_11))[Measure::loudness_short_term], -38 + i, 0.1, 0.1);
    check_near(loudness_of(tones(of_14))[Measure::loudness_momentary], -38 + i, 0.1, 0.1);
    eleven.insert(eleven.end(), of_11.begin(), of_11.end());
    fourteen.insert(fourteen.end(), of_14.begin(), of_14.end());
  }
  check_near(loudness_of(tones(eleven))[Measure::loudness_short_term], -19, 0.1, 0.1);
  check_near(loudness_of(tones(fourteen))[Measure::loudness_momentary], -19, 0.1, 0.1);
}

TEST_CASE("loudness: Tech 3341, cases 15 to 19, true peak of tones between samples") {
  struct Row {
    int number;
    double fraction;  // of the sample rate
    double degrees, amplitude, expected;
  };
  for (const Row& row :
       {Row{15, 0.25, 0, 0.5, -6}, Row{16, 0.25, 45, 0.5, -6}, Row{17, 1.0 / 6, 60, 0.5, -6},
        Row{18, 1.0 / 8, 67.5, 0.5, -6}, Row{19, 0.25, 45, 1.41, 3}}) {
    CAPTURE(row.number);
    std::vector<float> samples;
    constexpr int kFrames = kRate / 2, kRamp = kRate / 100;
    for (int i = 0; i < kFrames; ++i) {
      const double ramp = std::min(
          {1.0, static_cast<double>(i) / kRamp, static_cast<double>(kFrames - 1 - i) / kRamp});
      const double x =
          ramp * row.amplitude *
          std::sin(2 * std::numbers::pi * row.fraction * i + row.degrees * std::numbers::pi / 180);
      samples.insert(samples.end(), 2, static_cast<float>(x));
    }
    check_near(20 * std::log10(loudness_of(samples)[Measure::true_peak]), row.expected, 0.4, 0.2);
  }
}

TEST_CASE("loudness: Tech 3341, cases 20 to 23, true peak of a burst, by where samples are taken") {
  // A sine of fs/6 at 0.5, and in the middle of it one period of fs/4 at 1, continuous in phase, at
  // 4 times the rate; without what is above fs/2, each fourth sample from 0, 1, 2 or 3 on.
  constexpr int kTimes = 4, kFrames = kRate / 4, kRamp = kTimes * kRate / 100, kHalf = 512;
  constexpr int kBurst = kTimes * kFrames / 2 / (6 * kTimes) * (6 * kTimes);
  std::vector<double> high;
  for (int i = 0; i < kTimes * kFrames; ++i) {
    const int from = i - kBurst;
    const double ramp = std::min({1.0, static_cast<double>(i) / kRamp,
                                  static_cast<double>(kTimes * kFrames - 1 - i) / kRamp});
    const bool is_burst = from >= 0 && from < 4 * kTimes;
    const int phase = from < 0 ? i : from - 4 * kTimes;
    high.push_back(ramp * (is_burst ? std::sin(2 * std::numbers::pi * from / (4 * kTimes))
                                    : 0.5 * std::sin(2 * std::numbers::pi * phase / (6 * kTimes))));
  }
  std::vector<double> low_pass;
  for (int k = -kHalf; k <= kHalf; ++k) {
    const double t = std::numbers::pi * k / kTimes,
                 window = 0.5 + 0.5 * std::cos(std::numbers::pi * k / (kHalf + 1));
    low_pass.push_back((k == 0 ? 1 : std::sin(t) / t) / kTimes * window);
  }
  for (int first = 0; first < kTimes; ++first) {
    CAPTURE(first);
    std::vector<float> samples;
    for (int at = first; at < kTimes * kFrames; at += kTimes) {
      double sum = 0;
      for (int k = -kHalf; k <= kHalf; ++k)
        if (at + k >= 0 && at + k < kTimes * kFrames)
          sum += low_pass[static_cast<std::size_t>(k + kHalf)] *
                 high[static_cast<std::size_t>(at + k)];
      samples.insert(samples.end(), 2, static_cast<float>(sum));
    }
    check_near(20 * std::log10(loudness_of(samples)[Measure::true_peak]), 0, 0.4, 0.2);
  }
}

TEST_CASE("loudness: true peak is that of all sums, although most are passed over") {
  // The definition, at every sample: 24 taps for each of 3 phases, a sinc under a Hann window.
  std::mt19937 random(5);
  std::normal_distribution<float> draw;
  for (const std::int64_t frames : {1, 15, 17, 2048, 5003})
    for (const float loud : {0.0F, 0.3F, 3.0F}) {
      CAPTURE(frames);
      CAPTURE(loud);
      std::vector<float> samples;
      for (std::int64_t i = 0; i < frames; ++i)
        samples.push_back(0.1F * draw(random) * (i % 700 < 20 ? loud : 1.0F));
      double most = 0;
      for (std::int64_t i = 0; i < frames; ++i) {
        most = std::max(most, static_cast<double>(std::abs(samples[static_cast<std::size_t>(i)])));
        for (int p = 1; p < 4; ++p) {
          double sum = 0;
          for (std::int64_t k = 0; k < 24 && k <= i; ++k) {
            const double t = static_cast<double>(4 * k + p - 48) / 4 * std::numbers::pi;
            sum += samples[static_cast<std::size_t>(i - k)] * std::sin(t) / t *
                   (0.5 + 0.5 * std::cos(t / 12));
          }
          most = std::max(most, std::abs(sum));
        }
      }
      CHECK(loudness_of(samples, kRate, 1)[Measure::true_peak] ==
            doctest::Approx(most).epsilon(1e-5));
    }
}

TEST_CASE("loudness: Tech 3342, cases 1 to 4, the range") {
  if constexpr (kSanitized) return;  // minutes of sound, which the run without one measures
  struct Row {
    int number;
    std::vector<Stretch> stretches;
    double expected;
  };
  const Row rows[] = {
      {1, {{20, -20}, {20, -30}}, 10},
      {2, {{20, -20}, {20, -15}}, 5},
      {3, {{20, -40}, {20, -20}}, 20},
      {4, {{20, -50}, {20, -35}, {20, -20}, {20, -35}, {20, -50}}, 15},
  };
  for (const Row& row : rows) {
    CAPTURE(row.number);
    check_near(loudness_of(tones(row.stretches))[Measure::loudness_range], row.expected, 1, 1);
  }
}

TEST_CASE("loudness: what is too short or silent has none") {
  const MeasureValues brief = loudness_of(tones({{0.35, -20}}));
  CHECK(std::isnan(brief[Measure::loudness]));
  CHECK(std::isnan(brief[Measure::loudness_short_term]));
  const MeasureValues silent = loudness_of(std::vector<float>(kRate * 10));
  CHECK(std::isnan(silent[Measure::loudness]));
  CHECK(std::isnan(silent[Measure::loudness_range]));
  CHECK(silent[Measure::true_peak] == 0);
}

}  // namespace melflow::test::loudness_test
