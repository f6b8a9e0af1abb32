// What the spectrum of a recording says: the bandwidth of its sound, and hum of the mains.
#pragma once

#include <cstdint>
#include <vector>

#include "stages/features/mel/real_fft.h"
#include "stages/quality/kernel.h"

namespace melflow {

/// Powers of frames of `size` samples, with a Hann window.
class PowerSpectrum {
 public:
  explicit PowerSpectrum(int size);
  /// `in` [size]; returns the powers of `size` / 2 + 1 bins, until the next call.
  const std::vector<float>& of(const float* in);

 private:
  int size_;
  RealFft<float> fft_;
  AlignedArray<float> frame_, bins_;
  AlignedArray<double> work_;
  std::vector<float> window_, power_;
};

class BandwidthKernel final : public MeasuringKernel {
 public:
  explicit BandwidthKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  int rate_;
  PowerSpectrum spectrum_;
  std::vector<double> sums_;  // of the powers of each bin
  std::int64_t frames_ = 0;
};

class HumKernel final : public MeasuringKernel {
 public:
  explicit HumKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  [[nodiscard]] double stands_out(double hz) const;

  int step_;     // samples that become one
  double rate_;  // of these [Hz]
  PowerSpectrum spectrum_;
  std::vector<float> frame_;
  double sum_ = 0;
  int fill_ = 0;
  std::vector<double> logs_;  // sums of the logarithms of the powers of each bin
  std::int64_t frames_ = 0;
};

}  // namespace melflow
