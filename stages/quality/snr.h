// The signal-to-noise ratio of speech by WADA-SNR (Kim and Stern 2008).
#pragma once

#include <cstdint>

#include "stages/quality/kernel.h"

namespace melflow {

class SnrKernel final : public MeasuringKernel {
 public:
  explicit SnrKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  std::int64_t step_;          // one sample of as many is looked at
  double sum_ = 0, logs_ = 0;  // of the magnitudes that are not 0
  std::int64_t count_ = 0;
  double all_ = 0, used_ = 0;  // sum and number of the samples that are not 0
};

}  // namespace melflow
