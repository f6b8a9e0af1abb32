// Runs of samples at the highest or lowest value of their channel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stages/quality/kernel.h"

namespace melflow {

class ClippingKernel final : public MeasuringKernel {
 public:
  explicit ClippingKernel(int channels) : channels_(static_cast<std::size_t>(channels)) {}
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  // One side of a channel, its values with the sign of that side.
  struct Side {
    float extreme = 0;
    std::int64_t run = 0;  // samples at `extreme`, up to the last one seen
    std::int64_t runs = 0, samples = 0, first = -1;
    void sample(float value, std::int64_t at);
    void close(std::int64_t end);
  };
  std::vector<std::array<Side, 2>> channels_;  // highest, lowest
  std::int64_t samples_ = 0;
  int rate_ = 0;
};

}  // namespace melflow
