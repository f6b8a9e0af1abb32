// own_fft.h - a real Fourier transform of any length, one frame at a time, in double throughout.
//
// In:  n real samples, float or double.
// Out: n/2 + 1 complex bins, interleaved (re, im), not scaled.
//
// An even n is a complex transform of n/2 sample pairs. Prime factors up to 13 have steps
// (own_fft_body.h); a length with a larger one is a convolution (Bluestein 1970, "A linear
// filtering approach to the computation of discrete Fourier transform"). All instruction sets give
// the same bytes.

#pragma once

#include <cstddef>
#include <vector>

#include "stages/features/mel/lane_loops.h"

namespace melflow {

class OwnFft {
 public:
  explicit OwnFft(int n, const lanes::Loops& loops = *lanes::available().loops[0]);
  OwnFft(const OwnFft&) = delete;
  OwnFft& operator=(const OwnFft&) = delete;

  // [numbers], of execute's `work`.
  std::size_t work_size() const { return 4 * static_cast<std::size_t>(tables_.length); }
  // in [n], out [n/2 + 1] complex, work aligned to 64 bytes: distinct. Safe from many threads, each
  // with its own work.
  void execute(const float* in, float* out, double* work) const {
    loops_->own_fft_float(tables_, in, out, work);
  }
  void execute(const double* in, double* out, double* work) const {
    loops_->own_fft_double(tables_, in, out, work);
  }

 private:
  void make_steps(int size);
  void make_convolution();
  double* keep(std::size_t size) { return kept_.emplace_back(size).data(); }

  const lanes::Loops* loops_;
  lanes::FftTables tables_;
  std::vector<std::vector<double>> kept_;  // what tables_ refers to
};

}  // namespace melflow
