// real_fft.h - the Fourier transform of one frame, where the lanes (lane_loops.h) have none: by
// FFTW (real_fft_fftw.cpp) or, in a build without it, by melflow's own steps (real_fft_own.cpp).
//
// In:  n real samples.
// Out: n/2 + 1 complex bins, interleaved (re, im), not scaled.

#pragma once

#include <memory>
#include <string_view>

#include "stages/features/mel/aligned_array.h"

namespace melflow {

// Which of the two this build has, "fftw" or "melflow": their last bits differ.
std::string_view transform_name();

// A forward transform of n real samples, in single or double precision; copies share its tables.
template <class Real>
class RealFft {
 public:
  RealFft() = default;
  explicit RealFft(int n);  // [samples]

  // Work space of one thread.
  AlignedArray<double> make_work() const;
  // in [n], out [n/2 + 1] complex: distinct, both aligned to AlignedArray::alignment; `in` may be
  // overwritten. Safe from many threads, each with its own work.
  void execute(Real* in, Real* out, AlignedArray<double>& work) const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

extern template class RealFft<float>;
extern template class RealFft<double>;

}  // namespace melflow
