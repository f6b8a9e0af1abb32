#include "stages/quality/clipping.h"

#include <algorithm>
#include <cmath>

#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

constexpr std::int64_t kLeastRun = 3;  // samples
constexpr float kFullScale = 32766.5F / 32768;
constexpr float kLeastExtreme = 0.25F;  // below it slow tones rest at their peak for 3 samples

// The highest value and the negative of the lowest one; 0 at least.
MELFLOW_FOR_WIDE_VECTORS std::array<float, 2> extremes(const float* x, std::int64_t n) {
  return {lane_max(n, [x](std::int64_t i) { return x[i]; }),
          lane_max(n, [x](std::int64_t i) { return -x[i]; })};
}

}  // namespace

void ClippingKernel::Side::sample(float value, std::int64_t at) {
  value = std::min(value, kFullScale);
  if (value > extreme) {
    *this = {value, 1, 0, 0, -1};
  } else if (value == extreme && extreme > 0) {
    ++run;
  } else if (run > 0) {
    close(at);
  }
}

void ClippingKernel::Side::close(std::int64_t end) {
  if (run >= kLeastRun) {
    if (runs++ == 0) first = end - run;
    samples += run;
  }
  run = 0;
}

void ClippingKernel::push(const Chunk& chunk) {
  rate_ = chunk.sample_rate;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const float* x = chunk.channels[c];
    const std::array<float, 2> most = extremes(x, chunk.frames);
    for (const std::size_t s : {0, 1}) {
      Side& side = channels_[c][s];
      if (std::min(most[s], kFullScale) < side.extreme) {  // none of the chunk is at the extreme
        side.close(chunk.start);
        continue;
      }
      const float sign = s == 0 ? 1.0F : -1.0F;
      for (std::int64_t i = 0; i < chunk.frames; ++i) side.sample(sign * x[i], chunk.start + i);
    }
  }
  samples_ += chunk.frames;
}

void ClippingKernel::finish(MeasureValues& out) {
  std::int64_t runs = 0, clipped = 0, first = -1;
  for (auto& sides : channels_)
    for (Side& side : sides) {
      side.close(samples_);
      if (side.extreme < kLeastExtreme) continue;
      runs += side.runs;
      clipped += side.samples;
      if (side.first >= 0 && (first < 0 || side.first < first)) first = side.first;
    }
  out[Measure::clipped_runs] = static_cast<float>(runs);
  out[Measure::clipped_share] =
      static_cast<float>(static_cast<double>(clipped) /
                         (static_cast<double>(samples_) * static_cast<double>(channels_.size())));
  if (first >= 0) out[Measure::clipped_at] = static_cast<float>(static_cast<double>(first) / rate_);
}

}  // namespace melflow
