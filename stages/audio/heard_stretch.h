// The level of a recording, frame by frame. Frame i is centred at sample i * hop, with zeros beyond
// the recording; its level is its mean square, as in librosa.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "stages/items.h"

namespace melflow {

/// Frames of a recording, in samples.
struct LevelFrames {
  std::int64_t frame = 0, hop = 0;

  [[nodiscard]] std::int64_t begin(std::int64_t i) const { return i * hop - frame / 2; }
  /// The number of frames of a whole recording.
  [[nodiscard]] std::int64_t count(std::int64_t samples) const {
    const std::int64_t padded = samples + 2 * (frame / 2);
    return padded < frame ? 0 : (padded - frame) / hop + 1;
  }
};

/// Samples of a recording from `begin` on. Each sum covers one frame, always in the same order.
struct HeardStretch {
  Samples samples;
  std::int64_t begin = 0;

  [[nodiscard]] std::int64_t end() const { return begin + samples.count; }
  [[nodiscard]] Samples part(std::int64_t from, std::int64_t to) const {
    Samples out = samples;
    out.data += static_cast<std::size_t>(from - begin) * size_of(samples.type);
    out.count = to - from;
    return out;
  }

  /// The mean square of frame `i`; all of its samples must be here or beyond the recording.
  [[nodiscard]] double mean_square(const LevelFrames& l, std::int64_t i) const {
    const std::int64_t from = std::max<std::int64_t>(0, l.begin(i));
    const Samples in = part(from, std::max(from, std::min(l.begin(i) + l.frame, end())));
    const auto length = static_cast<double>(l.frame);
    if (in.type == SampleType::int16)
      return static_cast<double>(sum_of(reinterpret_cast<const std::int16_t*>(in.data), in.count)) /
             (length * 32768 * 32768);
    return sum_of(reinterpret_cast<const float*>(in.data), in.count) / length;
  }

 private:
  static std::int64_t sum_of(const std::int16_t* x, std::int64_t n) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::int32_t{x[i]} * x[i];
    return sum;
  }
  static double sum_of(const float* x, std::int64_t n) {
    constexpr int kLanes = 4;  // which compilers vectorise
    double sums[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) sums[k] += static_cast<double>(x[i + k]) * x[i + k];
    for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * x[i];
    return sums[0] + sums[1] + sums[2] + sums[3];
  }
};

/// Samples of a stream that a stage keeps from one block to the next.
struct KeptSamples {
  Buffer samples;
  std::int64_t at = 0, count = 0;

  /// Takes out the kept samples and returns them with the block's; copies only if there are any.
  HeardStretch joined(const Waveform& in, BufferPool& pool) {
    if (count == 0) return {in.samples, in.start};
    const std::size_t old_bytes = static_cast<std::size_t>(count) * size_of(in.samples.type);
    auto both = std::make_shared<Buffer>(pool.lease(old_bytes + in.samples.bytes()));
    std::memcpy(both->data(), samples.data(), old_bytes);
    samples = Buffer();
    if (in.samples.count > 0)
      std::memcpy(both->data() + old_bytes, in.samples.data, in.samples.bytes());
    return {{both, both->data(), count + in.samples.count, in.samples.type}, at};
  }
  /// Keeps the samples from `from` on.
  void keep(const HeardStretch& all, std::int64_t from, BufferPool& pool) {
    at = std::clamp(from, all.begin, all.end());
    const Samples rest = all.part(at, all.end());
    count = rest.count;
    samples = pool.lease(rest.bytes());
    if (rest.count > 0) std::memcpy(samples.data(), rest.data, rest.bytes());
  }
};

}  // namespace melflow
