// Measures of recordings against their definitions in docs/quality.md, computed here from signals
// whose defects are known by construction.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "stages/quality/meter.h"
#include "tests/support/audio_files.h"

namespace melflow::test::quality_test {
namespace {

constexpr int kRate = 16'000;
using Floats = std::vector<float>;

MeasureSet all() {
  MeasureSet out;
  return out.set();
}

// Interleaved samples, in calls of `block` frames.
template <class Value>
MeasureValues measured(const std::vector<Value>& samples, int rate = kRate, int channels = 1,
                       std::int64_t block = 1000) {
  QualityMeter meter(all(), {}, rate, channels);
  const auto frames = static_cast<std::int64_t>(samples.size()) / channels;
  for (std::int64_t i = 0; i < frames; i += block)
    meter.push(samples.data() + i * channels, std::min(block, frames - i));
  return *meter.finish(0);
}

// Noise with the envelope of syllables, which nothing is wrong with.
Floats sound(std::int64_t frames, double scale = 0.1, unsigned seed = 1, int rate = kRate) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  Floats out;
  for (std::int64_t i = 0; i < frames; ++i) {
    const double t = static_cast<double>(i) / rate;
    const double envelope = 0.6 + 0.4 * std::sin(2 * std::numbers::pi * 4 * t);
    out.push_back(static_cast<float>(scale * envelope * draw(random)));
  }
  return out;
}

Floats tone(double hz, std::int64_t frames, double amplitude, int rate = kRate) {
  Floats out;
  for (std::int64_t i = 0; i < frames; ++i)
    out.push_back(static_cast<float>(
        amplitude * std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / rate)));
  return out;
}

Floats interleaved(const std::vector<Floats>& channels) {
  Floats out;
  for (std::size_t i = 0; i < channels.front().size(); ++i)
    for (const Floats& channel : channels) out.push_back(channel[i]);
  return out;
}

double db(double level) { return 20 * std::log10(level); }

}  // namespace

TEST_CASE("quality: a sound that nothing is wrong with has no defects") {
  for (const int rate : {8000, 16'000, 44'100, 48'000}) {
    CAPTURE(rate);
    const MeasureValues v = measured(sound(6LL * rate, 0.1, 3, rate), rate);
    for (const Measure m : {Measure::clipped_runs, Measure::dropouts, Measure::repeats,
                            Measure::clicks, Measure::silent_share, Measure::dead_channels,
                            Measure::equal_channels, Measure::inverted_channels}) {
      CAPTURE(std::string(info_of(m).name));
      CHECK(v[m] == 0);
    }
    for (const Measure m : {Measure::clipped_at, Measure::dropout_at, Measure::repeat_at,
                            Measure::click_at, Measure::silent_at})
      CHECK(std::isnan(v[m]));
    CHECK(v[Measure::hum] < 6);
    CHECK(v[Measure::bandwidth] > 0.49F * static_cast<float>(rate));
  }
}

TEST_CASE("quality: peak, rms and offset are those of all samples") {
  Floats left = sound(50'001, 0.05, 1), right = sound(50'001, 0.02, 2);
  for (float& x : right) x -= 0.03F;
  right[777] = -0.9F;
  double squares = 0, sum = 0;
  for (const float x : left) squares += static_cast<double>(x) * x;
  for (const float x : right) squares += static_cast<double>(x) * x, sum += x;
  const MeasureValues v = measured(interleaved({left, right}), kRate, 2);
  CHECK(v[Measure::peak] == 0.9F);
  CHECK(v[Measure::rms] == doctest::Approx(std::sqrt(squares / 100'002)).epsilon(1e-6));
  CHECK(v[Measure::dc] == doctest::Approx(-sum / 50'001).epsilon(1e-5));
}

TEST_CASE("quality: values do not depend on how samples come, to the last bit") {
  for (const int channels : {1, 2, 3}) {
    std::vector<std::int16_t> samples;
    for (const float x : test_signal(70'001, channels))
      samples.push_back(
          static_cast<std::int16_t>(std::lround(40'000 * std::clamp(x, -0.8F, 0.8F))));
    std::fill_n(samples.begin() + 30'000 * channels, 300 * channels, std::int16_t{0});
    const MeasureValues whole = measured(samples, kRate, channels, 1 << 20);
    Floats floats;
    for (const std::int16_t s : samples) floats.push_back(static_cast<float>(s) / 32768.0F);
    for (const std::int64_t block : {1, 7, 441, 2048, 2049, 40'000}) {
      const MeasureValues a = measured(samples, kRate, channels, block),
                          b = measured(floats, kRate, channels, block);
      for (std::size_t i = 0; i < kMeasureCount; ++i) {
        CAPTURE(std::string(measures()[i].name));
        CHECK(std::bit_cast<std::uint32_t>(a.of[i]) == std::bit_cast<std::uint32_t>(whole.of[i]));
        CHECK(std::bit_cast<std::uint32_t>(b.of[i]) == std::bit_cast<std::uint32_t>(whole.of[i]));
      }
    }
  }
}

TEST_CASE("quality: only what is wanted is measured, and what was lost is told") {
  MeasureSet set;
  set.set(static_cast<std::size_t>(Measure::rms));
  set.set(static_cast<std::size_t>(Measure::lost_share));
  QualityMeter meter(set, {}, kRate, 1);
  const Floats samples = sound(1000);
  meter.push(samples.data(), 1000);
  const MeasureValues v = *meter.finish(0.25);
  for (std::size_t i = 0; i < kMeasureCount; ++i) CHECK(std::isnan(v.of[i]) == !set[i]);
  CHECK(v[Measure::lost_share] == 0.25F);
  // Nothing was read.
  const MeasureValues none = *QualityMeter(all(), {}, kRate, 2).finish(0);
  CHECK(std::isnan(none[Measure::peak]));
}

TEST_CASE("quality: clipped runs are counted, at full scale and below, each where it is") {
  for (const float limit : {2.0F, 0.999F, 0.5F, 0.3F}) {
    CAPTURE(limit);
    Floats samples = sound(80'000, 0.02);
    const float at = std::min(limit, 1.0F);
    for (const std::size_t begin : {20'000, 40'000, 60'000})
      for (std::size_t i = begin; i < begin + 5; ++i) samples[i] = begin == 40'000 ? -at : at;
    samples[70'000] = samples[70'001] = at;  // too short
    const MeasureValues v = measured(samples);
    CHECK(v[Measure::clipped_runs] == 3);
    CHECK(v[Measure::clipped_share] == doctest::Approx(15.0 / 80'000));
    CHECK(v[Measure::clipped_at] == doctest::Approx(20'000.0 / kRate));
  }
  // Below the least extreme, and a tone that is not clipped.
  Floats quiet = sound(80'000, 0.02);
  std::fill_n(quiet.begin() + 5000, 5, 0.2F);
  CHECK(measured(quiet)[Measure::clipped_runs] == 0);
  CHECK(measured(tone(440, 80'000, 0.99))[Measure::clipped_runs] == 0);
}

TEST_CASE("quality: silence is what is below a floor, in frames of 10 ms") {
  Floats samples = sound(kRate * 4, 0.1);
  const auto set = [&](double from, double to, float level) {
    for (auto i = static_cast<std::size_t>(from * kRate); i < static_cast<std::size_t>(to * kRate);
         ++i)
      samples[i] = i % 2 == 0 ? level : -level;
  };
  set(1, 1.5, 0.001F);    // -60 dB: quiet
  set(2, 2.3, 0.00003F);  // -90 dB: dead air
  set(3, 3.1, 0);
  const MeasureValues v = measured(samples);
  CHECK(v[Measure::quiet_share] == doctest::Approx(0.9 / 4));
  CHECK(v[Measure::quiet_longest] == doctest::Approx(0.5));
  CHECK(v[Measure::silent_share] == doctest::Approx(0.4 / 4));
  CHECK(v[Measure::silent_longest] == doctest::Approx(0.3));
  CHECK(v[Measure::silent_at] == doctest::Approx(2));
}

TEST_CASE("quality: a tenth of the frames is below the noise floor") {
  Floats samples = tone(1000, kRate * 10, 0.5);
  for (std::size_t i = 0; i < 2 * kRate; ++i) samples[i] *= 0.002F;
  CHECK(measured(samples)[Measure::noise_floor] ==
        doctest::Approx(db(0.001 / std::sqrt(2))).epsilon(0.01));
}

TEST_CASE("quality: dead, equal and inverted channels") {
  const Floats a = sound(30'000, 0.1, 1), b = sound(30'000, 0.1, 2), dead(30'000, 0.0F);
  Floats inverted = a, scaled = a, noisy = a;
  for (float& x : inverted) x = -x;
  for (float& x : scaled) x *= -0.5F;
  for (std::size_t i = 0; i < noisy.size(); ++i) noisy[i] += 1e-4F * b[i];
  struct Row {
    std::vector<Floats> channels;
    float dead, equal, inverted;
  };
  for (const Row& row : {Row{{a}, 0, 0, 0}, Row{{a, b}, 0, 0, 0}, Row{{a, dead}, 1, 0, 0},
                         Row{{dead, a}, 1, 0, 0}, Row{{dead, dead}, 0, 0, 0}, Row{{a, a}, 0, 1, 0},
                         Row{{a, noisy}, 0, 1, 0}, Row{{a, inverted}, 0, 0, 1},
                         Row{{a, scaled}, 0, 0, 1}, Row{{a, b, a, inverted, dead}, 1, 1, 1}}) {
    const auto channels = static_cast<int>(row.channels.size());
    const MeasureValues v = measured(interleaved(row.channels), kRate, channels);
    CHECK(v[Measure::dead_channels] == row.dead);
    CHECK(v[Measure::equal_channels] == row.equal);
    CHECK(v[Measure::inverted_channels] == row.inverted);
  }
}

TEST_CASE("quality: a dropout is a run of zeros between sound, not a pause") {
  for (const int rate : {8000, 44'100}) {
    Floats samples = sound(rate * 3LL, 0.1, 5, rate);
    const auto zeros = [&](double at, double seconds) {
      std::fill_n(samples.begin() + static_cast<std::ptrdiff_t>(at * rate),
                  static_cast<std::ptrdiff_t>(seconds * rate), 0.0F);
    };
    zeros(0.5, 0.02);
    zeros(1.5, 0.003);
    // A pause whose edges are faded, and zeros at the end.
    for (int i = 0; i < rate / 10; ++i) {
      samples[static_cast<std::size_t>(rate * 2 + i)] *=
          1.0F - 10.0F * static_cast<float>(i) / static_cast<float>(rate);
    }
    zeros(2.1, 0.2);
    zeros(2.9, 0.1);
    const MeasureValues v = measured(samples, rate);
    CHECK(v[Measure::dropouts] == 2);
    CHECK(v[Measure::dropout_at] == doctest::Approx(0.5).epsilon(1e-3));
  }
}

TEST_CASE("quality: a stretch that is repeated is found, a periodic sound is none") {
  for (const double seconds : {0.01, 0.05, 0.3}) {
    CAPTURE(seconds);
    Floats samples = sound(kRate * 4, 0.1, 6);
    const auto length = static_cast<std::ptrdiff_t>(seconds * kRate);
    std::copy_n(samples.begin() + 20'000, length, samples.begin() + 20'000 + length);
    const MeasureValues v = measured(samples);
    CHECK(v[Measure::repeats] == 1);
    CHECK(v[Measure::repeat_at] ==
          doctest::Approx((20'000 + static_cast<double>(length)) / kRate).epsilon(1e-4));
  }
  Floats periodic;
  const Floats period = sound(160);
  for (int i = 0; i < 200; ++i) periodic.insert(periodic.end(), period.begin(), period.end());
  CHECK(measured(periodic)[Measure::repeats] == 0);
  CHECK(measured(Floats(30'000, 0.25F))[Measure::repeats] == 0);
}

TEST_CASE("quality: clicks stand out from what is around them") {
  for (const float height : {0.6F, 0.2F}) {
    Floats samples = tone(200, kRate * 3, 0.3);
    for (const std::size_t at : {10'000, 20'000, 40'000}) samples[at] += height;
    const MeasureValues v = measured(samples);
    CHECK(v[Measure::clicks] == 3);
    CHECK(v[Measure::click_at] == doctest::Approx(10'000.0 / kRate).epsilon(2e-3));
  }
  // Steps too, as where samples are missing.
  Floats step = tone(200, kRate * 3, 0.3);
  for (std::size_t i = 20'000; i < step.size(); ++i) step[i] += 0.2F;
  CHECK(measured(step)[Measure::clicks] == 1);
  // A burst that takes 1 ms, as the release of a plosive, is none.
  Floats burst = tone(200, kRate * 3, 0.3);
  for (std::size_t i = 0; i < kRate / 1000; ++i) burst[20'000 + i] += i % 2 == 0 ? 0.2F : -0.2F;
  CHECK(measured(burst)[Measure::clicks] == 0);
  // In noise as strong as the click there is none, nor where noise begins.
  Floats noisy = sound(kRate * 3, 0.2);
  noisy[20'000] += 0.3F;
  CHECK(measured(noisy)[Measure::clicks] == 0);
  std::fill_n(noisy.begin(), 16'000, 0.0F);
  CHECK(measured(noisy)[Measure::clicks] == 0);
}

TEST_CASE("quality: WADA-SNR finds the ratio of gamma-distributed speech and Gaussian noise") {
  std::mt19937 random(4);
  std::gamma_distribution<double> magnitude(0.4);
  std::normal_distribution<double> noise;
  for (const double ratio : {-5.0, 0.0, 10.0, 20.0, 40.0}) {
    CAPTURE(ratio);
    const double scale = std::sqrt(std::pow(10, ratio / 10) / 0.56);  // E s^2 is 0.4 * 1.4
    Floats samples;
    for (int i = 0; i < 600'000; ++i) {
      const double speech = scale * magnitude(random) * (random() % 2 == 0 ? 1 : -1);
      samples.push_back(static_cast<float>(1e-3 * (speech + noise(random))));
    }
    CHECK(measured(samples)[Measure::snr] == doctest::Approx(ratio).epsilon(0.02).scale(20));
    for (float& x : samples) x += 0.005F;  // an offset is no noise
    CHECK(measured(samples)[Measure::snr] == doctest::Approx(ratio).epsilon(0.02).scale(20));
  }
}

TEST_CASE("quality: bandwidth is where the sound ends") {
  constexpr int kHigh = 44'100;
  for (const double limit : {3700.0, 8000.0, 16'000.0, 20'000.0}) {
    CAPTURE(limit);
    Floats samples(kHigh * 3);
    std::mt19937 random(2);
    for (double hz = 50; hz < limit; hz += 97) {
      const double phase = static_cast<double>(random() % 1000) / 159;
      for (std::size_t i = 0; i < samples.size(); ++i)
        samples[i] += static_cast<float>(
            0.003 * std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / kHigh + phase));
    }
    // As a file of 16 bits has them.
    for (float& x : samples) x = std::round(x * 32768) / 32768;
    const float found = measured(samples, kHigh)[Measure::bandwidth];
    CHECK(found > limit - 150);
    CHECK(found < limit + 150);
  }
}

TEST_CASE("quality: hum of 50 and 60 Hz, no tones of other frequencies") {
  struct Tones {
    std::vector<double> frequencies;  // [Hz]
    float mains;                      // 0: no hum
  };
  const Tones all[] = {
      {{50, 100, 150}, 50}, {{60, 120, 180}, 60},
      {{49.9, 99.8}, 50},   {{100, 200}, 50},  // without the mains frequency itself
      {{53, 106, 159}, 0},  {{98, 196}, 0},    // a note, G2
      {{49.85, 150.6}, 0},                     // each near a multiple, of no common frequency
      {{100}, 0},
  };
  for (const int rate : {8000, 44'100}) {
    for (const Tones& tones : all) {
      CAPTURE(tones.frequencies[0]);
      Floats samples = sound(rate * 8LL, 0.05, 9, rate);
      for (const double frequency : tones.frequencies) {
        const Floats line = tone(frequency, rate * 8LL, 0.01, rate);
        for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += line[i];
      }
      const MeasureValues v = measured(samples, rate);
      if (tones.mains == 0) {
        CHECK(v[Measure::hum] < 6);
      } else {
        CHECK(v[Measure::hum] > 12);
        CHECK(v[Measure::hum_hz] == tones.mains);
      }
    }
  }
  CHECK(std::isnan(measured(sound(8000))[Measure::hum]));  // less than a second
}

}  // namespace melflow::test::quality_test
