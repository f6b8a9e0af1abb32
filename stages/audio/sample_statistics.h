// Mean, variance and peak of samples that come in pieces. The result depends on the samples alone:
// every sample is added to the sum of its place modulo kLanes, in the order of the samples, as its
// difference from the first one, so that an offset leaves the variance its digits.
#pragma once

#include <array>
#include <cstdint>

#include "stages/items.h"

namespace melflow {

class SampleStatistics {
 public:
  void add(const Samples& samples);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double mean() const;
  /// That of the samples themselves (divided by their number).
  [[nodiscard]] double variance() const;
  /// The greatest magnitude.
  [[nodiscard]] double peak() const { return peak_; }

 private:
  static constexpr int kLanes = 8;
  template <class Sample>
  void add_all(const Sample* samples, std::int64_t count);
  [[nodiscard]] static double total(const std::array<double, kLanes>& lanes);

  std::array<double, kLanes> sums_{}, squares_{};
  double first_ = 0, peak_ = 0;
  std::int64_t count_ = 0;
};

/// Writes (x - mean) * scale for every sample x, computed in double precision.
void scale_samples(const Samples& samples, double mean, double scale, float* out);

}  // namespace melflow
