// Measures a recording with the kernels that a set of measures needs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stages/quality/kernel.h"
#include "stages/sample_meter.h"

namespace melflow {

struct QualityFloors {
  double quiet_db = -50, silent_db = -80;  ///< 0 dB is a mean square of 1
};

class QualityMeter final : public SampleMeter {
 public:
  QualityMeter(const MeasureSet& wanted, const QualityFloors& floors, int sample_rate,
               int channels);
  void push(const std::int16_t* samples, std::int64_t frames) override;
  void push(const float* samples, std::int64_t frames) override;
  std::shared_ptr<MeasureValues> finish(double lost) override;

 private:
  template <class Value>
  void take(const Value* samples, std::int64_t frames, float scale);
  void close_chunk();
  [[nodiscard]] float* channel(std::size_t c) {
    return samples_.data() + c * (Chunk::kHistory + Chunk::kFrames) + Chunk::kHistory;
  }

  const MeasureSet wanted_;
  std::vector<float> samples_;  // [channels][kHistory + kFrames]
  Chunk chunk_;
  std::vector<std::unique_ptr<MeasuringKernel>> kernels_;
};

}  // namespace melflow
