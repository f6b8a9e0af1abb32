// What the micro-benchmarks share.
#pragma once

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace micro {

inline void per(benchmark::State& state, const char* what, double count) {
  state.counters[what] =
      benchmark::Counter(static_cast<double>(state.iterations()) * count,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Tones and noise, in the range of int16 with some headroom.
template <class Sample>
std::vector<Sample> signal(std::int64_t n) {
  std::vector<Sample> samples(static_cast<std::size_t>(n));
  std::uint32_t seed = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const double x = 0.3 * std::sin(0.05 * static_cast<double>(i)) +
                     0.1 * (static_cast<double>(seed >> 8U) / (1 << 23) - 1.0);
    samples[static_cast<std::size_t>(i)] =
        static_cast<Sample>(sizeof(Sample) == 2 ? 32767.0 * x : x);
  }
  return samples;
}

}  // namespace micro
