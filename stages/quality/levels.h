// Peak, level, offset, silence and what channels have to do with each other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stages/quality/kernel.h"

namespace melflow {

class LevelsKernel final : public MeasuringKernel {
 public:
  /// Floors as mean squares.
  LevelsKernel(int sample_rate, int channels, double quiet, double silent);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  // Stretches of frames below a floor.
  struct Floor {
    double mean_square = 0;
    std::int64_t below = 0, run = 0, longest = 0, longest_at = 0;  // frames
    void frame(double level, std::int64_t number);
  };
  struct Channel {
    double sum = 0, squares = 0;
    float peak = 0;
  };
  struct Pair {
    int a = 0, b = 0;
    double product = 0;
  };
  void close_frame();

  int rate_;
  std::int64_t frame_length_;  // [samples]
  std::int64_t samples_ = 0;   // of a channel
  std::vector<Channel> channels_;
  std::vector<Pair> pairs_;
  double in_frame_ = 0;  // squares of the frame that has begun, of all channels
  std::int64_t frame_fill_ = 0, frames_ = 0;
  Floor quiet_, silent_;
  // Numbers of frames by level, from kLowest on in steps of kStep.
  static constexpr double kLowest = -120, kStep = 0.5;  // [dB]
  std::array<std::int64_t, 256> levels_{};
};

}  // namespace melflow
