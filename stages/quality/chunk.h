// The pieces of a recording that kernels get: always the same, whatever blocks it came in, so that
// every sum is made in the same order.
#pragma once

#include <array>
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

/// Adds up f(i) of i in [0, n).
template <class F>
[[gnu::always_inline]] inline float lane_sum(std::int64_t n, F&& f) {
  std::array<float, kSumLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (int l = 0; l < kSumLanes; ++l) lanes[static_cast<std::size_t>(l)] += f(i + l);
  for (; i < n; ++i) lanes[0] += f(i);
  float out = 0;
  for (const float lane : lanes) out += lane;
  return out;
}

/// The largest f(i) of i in [0, n); 0 for none, and where all are negative.
template <class F>
[[gnu::always_inline]] inline float lane_max(std::int64_t n, F&& f) {
  std::array<float, kSumLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (int l = 0; l < kSumLanes; ++l) {
      const float value = f(i + l);
      float& lane = lanes[static_cast<std::size_t>(l)];
      lane = value > lane ? value : lane;
    }
  for (; i < n; ++i) lanes[0] = f(i) > lanes[0] ? f(i) : lanes[0];
  float out = 0;
  for (const float lane : lanes) out = lane > out ? lane : out;
  return out;
}

}  // namespace melflow
