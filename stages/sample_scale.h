/// Samples in another scale than that of the pipeline, in which full scale is 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <fmt/format.h>

namespace melflow {

/// A warning about floating-point samples with this largest magnitude, or "". Gains and filters
/// exceed full scale by a few times; samples in the scale of integers by far more, unless they are
/// nearly silent.
inline std::string scale_remark(float peak) {
  constexpr float kOdd = 16;
  if (!(peak >= kOdd)) return "";
  return fmt::format(
      "samples up to {:.0f}; full scale is 1 (divide those in the scale of 16-bit integers by "
      "32768)",
      peak);
}

/// The largest magnitude of samples.
inline float peak_of(std::span<const float> samples) {
  float peak = 0;
  for (const float sample : samples) peak = std::max(peak, std::abs(sample));
  return peak;
}

}  // namespace melflow
