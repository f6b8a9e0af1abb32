// Measures the stage quality: one measure's kernel at a time, the default set and all, on 44.1 kHz
// stereo in int16.
//
//   quality/NAME   a recording of 10 s from samples in cache to its values
//
// The relevant figure is real_time: seconds of audio a second of one core.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "stages/quality/meter.h"

namespace {

using namespace melflow;

constexpr int kRate = 44'100, kChannels = 2, kSeconds = 10;

/// Noise with the envelope of syllables and a few tones, different in the two channels.
std::vector<std::int16_t> recording() {
  std::mt19937 random(1);
  std::normal_distribution<double> draw;
  std::vector<std::int16_t> out;
  double slow[kChannels] = {};
  for (int i = 0; i < kRate * kSeconds; ++i)
    for (double& s : slow) {
      s = 0.9 * s + draw(random);
      const double t = static_cast<double>(i) / kRate;
      const double x = (0.6 + 0.4 * std::sin(25 * t)) * (0.05 * s + 0.2 * std::sin(2764 * t));
      out.push_back(static_cast<std::int16_t>(std::lround(20'000 * std::clamp(x, -1.0, 1.0))));
    }
  return out;
}

void measure(benchmark::State& state, const MeasureSet& set) {
  static const std::vector<std::int16_t> samples = recording();
  constexpr std::int64_t kBlock = 16'384;
  constexpr std::int64_t kFrames = std::int64_t{kRate} * kSeconds;
  for (auto _ : state) {
    QualityMeter meter(set, {}, kRate, kChannels);
    for (std::int64_t i = 0; i < kFrames; i += kBlock)
      meter.push(samples.data() + i * kChannels, std::min(kBlock, kFrames - i));
    benchmark::DoNotOptimize(meter.finish(0));
  }
  state.counters["real_time"] = benchmark::Counter(
      kSeconds * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

const bool registered = [] {
  MeasureSet all;
  all.set();
  benchmark::RegisterBenchmark("quality/default",
                               [](benchmark::State& s) { measure(s, default_measures()); });
  benchmark::RegisterBenchmark("quality/all", [=](benchmark::State& s) { measure(s, all); });
  for (const MeasureInfo& m : measures()) {
    // The first measure of each kernel.
    const bool is_first = &m == measures().data() || (&m - 1)->kernel != m.kernel;
    if (!is_first && m.kernel != MeasureKernel::facts) continue;
    MeasureSet one;
    one.set(static_cast<std::size_t>(measure_of(m)));
    if (m.kernel == MeasureKernel::facts && measure_of(m) != Measure::lost_share) continue;
    const std::string name = m.kernel == MeasureKernel::facts ? "none" : m.name;
    benchmark::RegisterBenchmark(("quality/" + name).c_str(),
                                 [=](benchmark::State& s) { measure(s, one); });
  }
  return true;
}();

}  // namespace
