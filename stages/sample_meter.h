// What a stage wants to see of every recording's samples before channels are mixed.
#pragma once

#include <cstdint>
#include <memory>

#include "stages/measures.h"

namespace melflow {

/// Measures one recording. The values do not depend on how its samples are divided into calls.
/// Threads: one at a time.
class SampleMeter {
 public:
  virtual ~SampleMeter() = default;
  /// Takes interleaved frames, in order. int16 counts as value / 32768.
  virtual void push(const std::int16_t* samples, std::int64_t frames) = 0;
  virtual void push(const float* samples, std::int64_t frames) = 0;
  /// Returns the values, after the last frame. `lost`: the share of the recording that is known to
  /// be lost.
  virtual std::shared_ptr<MeasureValues> finish(double lost) = 0;
};

/// Makes a meter for each recording.
class MakesMeters {
 public:
  virtual ~MakesMeters() = default;
  [[nodiscard]] virtual std::unique_ptr<SampleMeter> meter(int sample_rate, int channels) const = 0;
};

}  // namespace melflow
