// The pieces of a recording that kernels get: always the same, whatever blocks it came in, so that
// every sum is made in the same order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace melflow {

/// Frames [start, start + frames) of a recording, channel by channel.
struct Chunk {
  static constexpr std::int64_t kFrames = 2048;  ///< of every chunk but the last
  static constexpr std::int64_t kHistory = 512;  ///< samples before a chunk that can be read, 0
                                                 ///< before the recording
  int sample_rate = 0;
  std::int64_t start = 0, frames = 0;
  std::vector<const float*> channels;  ///< each [-kHistory, frames)

  [[nodiscard]] double seconds(std::int64_t frame) const {
    return static_cast<double>(frame) / sample_rate;
  }
};

/// Sums are made in as many lanes, so that compilers can use vectors.
inline constexpr int kSumLanes = 8;

/// Joins f(i) of i in [0, n) in lanes, and then the lanes.
template <class F, class Join>
[[gnu::always_inline]] inline float over_lanes(std::int64_t n, F&& f, Join&& join) {
  float lanes[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
#pragma GCC unroll 1  // GCC 12 finds no vectors in the unrolled loop
    for (int l = 0; l < kSumLanes; ++l) lanes[l] = join(lanes[l], f(i + l));
  for (int l = 0; l < n - i; ++l) lanes[l] = join(lanes[l], f(i + l));
  for (int half = kSumLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] = join(lanes[l], lanes[l + half]);
  return lanes[0];
}

/// Adds up f(i) of i in [0, n).
template <class F>
[[gnu::always_inline]] inline float lane_sum(std::int64_t n, F&& f) {
  return over_lanes(n, f, [](float a, float b) { return a + b; });
}

/// The largest f(i) of i in [0, n); 0 for none, and where all are negative.
template <class F>
[[gnu::always_inline]] inline float lane_max(std::int64_t n, F&& f) {
  return over_lanes(n, f, [](float a, float b) { return b > a ? b : a; });
}

}  // namespace melflow
