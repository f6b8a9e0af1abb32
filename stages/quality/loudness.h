// Loudness by EBU R 128: ITU-R BS.1770-5 (weighting, gates, true peak), EBU Tech 3341 (momentary,
// short-term) and 3342 (range).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stages/quality/kernel.h"

namespace melflow {

/// A filter of the second order for two channels at once; a0 is 1.
struct Biquad {
  double b0 = 1, b1 = 0, b2 = 0, a1 = 0, a2 = 0;
};
/// The two filters of the K-weighting at a sample rate.
std::array<Biquad, 2> k_weighting(double sample_rate);

/// Energies in classes of 0.05 LU from -70 LUFS on; for gates, in bounded memory.
class EnergyHistogram {
 public:
  void add(double energy);
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  /// The mean energy of all at or above `least`.
  [[nodiscard]] double mean(double least) const;
  /// The loudness below which a share of those at or above `least` is [LUFS].
  [[nodiscard]] double percentile(double share, double least) const;

 private:
  static constexpr std::size_t kClasses = 1800;  // up to 20 LUFS
  struct Class {
    std::int64_t count = 0;
    double energy = 0;
  };
  std::array<Class, kClasses> classes_{};
  std::int64_t count_ = 0;
};

class LoudnessKernel final : public MeasuringKernel {
 public:
  LoudnessKernel(int sample_rate, int channels);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  // The last two values of the input, between the filters and behind them, of two channels.
  struct ChannelPair {
    std::array<std::array<double, 2>, 6> state{};
  };
  double weigh(ChannelPair& pair, const float* a, const float* b, std::int64_t n,
               std::array<double, 2> weights) const;
  void close_step();

  std::array<Biquad, 2> filters_;
  std::vector<double> weights_;  // of the channels
  std::vector<ChannelPair> pairs_;
  std::int64_t step_;  // 10 ms [samples]
  std::int64_t fill_ = 0, steps_ = 0;
  double energy_ = 0;               // of the step that has begun
  std::array<double, 300> last_{};  // of the last steps, in a ring
  double momentary_ = 0, short_term_ = 0;
  EnergyHistogram blocks_, ranges_;
};

class TruePeakKernel final : public MeasuringKernel {
 public:
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  float peak_ = 0;
};

}  // namespace melflow
