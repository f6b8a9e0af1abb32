// Loudness against the synthetic cases of EBU Tech 3341 (version 4) and 3342 (version 4), generated
// from their text, within their tolerances. Not run are the cases of programme material, which the
// EBU gives as files: 7 and 8 of 3341, 5 and 6 of 3342.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stages/quality/meter.h"

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
  std::vector<Stretch> eleven, fourteen;
  for (int i = 0; i < 20; ++i) {
    eleven.insert(eleven.end(), {{i * 0.15, -200}, {3, -38.0 + i}, {3 - i * 0.15, -200}});
    fourteen.insert(fourteen.end(), {{i * 0.02, -200}, {0.4, -38.0 + i}, {0.4 - i * 0.02, -200}});
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

TEST_CASE("loudness: Tech 3342, cases 1 to 4, the range") {
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
