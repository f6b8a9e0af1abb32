// halver.h - halves the sample rate of a stream by a half-band filter.
//
// In:  samples in pieces of any sizes.
// Out: output m, centred at sample 2m of the input: half of it and of the weighted sum of the
//      samples 1, 3, 5, ... before and after it. Before and after the stream there are zeros.
#pragma once

#include <cstddef>
#include <vector>

namespace melflow::fingerprint {

/// The filter: sin(x)/x under a Kaiser window, whose taps sum to 1.
class HalfBand {
 public:
  /// `length`: of the filter [taps], 12 n - 1.
  HalfBand(int length, double kaiser_beta);
  /// The taps at distances 1, 3, 5, ...; those at other even distances are 0, and that in the
  /// middle is 1/2.
  [[nodiscard]] const std::vector<float>& odd_taps() const { return odd_taps_; }

 private:
  std::vector<float> odd_taps_;
};

class Halver {
 public:
  explicit Halver(const HalfBand& filter);  // which outlives this
  /// Appends the outputs that the samples complete; with the last ones, there are as many as half
  /// of all samples, rounded up.
  void add(const float* samples, std::size_t count, bool is_last, std::vector<float>& out);

 private:
  const std::vector<float>* taps_;
  std::vector<float> even_, odd_;  // those that later outputs need
  bool is_odd_next_ = false;
};

}  // namespace melflow::fingerprint
