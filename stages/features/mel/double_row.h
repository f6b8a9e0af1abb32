// double_row.h - rows in double precision (precision: double), one frame at a time (real_fft.h).
//
// In:  SignalView (mel_signal.h), the position of a frame.
// Out: the frame's row [bands or bins], rounded to float once, at the end. The steps that need the
//      whole utterance (utterance_steps.h) come later.
//
// All arithmetic is double: samples, window, transform, power, filterbank and logarithm. A bin's
// error is about 1e-16 of the frame's largest one, so a value 100 dB below the peak is as accurate
// as the peak itself; in single precision it would be noise.

#pragma once

#include <cstdint>
#include <vector>

#include "stages/features/mel/mel_filterbank.h"
#include "stages/features/mel/mel_plan.h"
#include "stages/features/mel/mel_signal.h"
#include "stages/features/mel/real_fft.h"

namespace melflow {

class DoubleRow {
 public:
  // Work space of one thread.
  struct Scratch {
    AlignedArray<double> frame;     // [n_fft]
    AlignedArray<double> spectrum;  // [n_bins] complex, then [n_bins] powers
    AlignedArray<double> work;      // [frame_length], for the conditioner
    AlignedArray<double> of_fft;    // the transform's own
  };

  explicit DoubleRow(const MelPlan& plan);

  Scratch make_scratch() const;
  // Writes the bands or bins of the frame that starts at sample `start` of the utterance to `out`.
  // Returns the frame's energy before the logarithm if the options request one. Throws
  // std::out_of_range if a sample is needed that the view lacks.
  template <class Sample>
  double compute(const SignalView<Sample>& view, std::int64_t start, Scratch& scratch,
                 float* out) const;

 private:
  double level(double value) const;

  MelOptions options_;  // resolved
  int frame_length_, n_bins_;
  std::vector<double> window_;  // [frame_length]
  Filterbank bank_;             // for Output::mel
  double floor_;                // of a band before its level
  double factor_, shift_;       // of the logarithm
  Conditioner conditioner_;
  RealFft<double> fft_;
};

extern template double DoubleRow::compute(const SignalView<std::int16_t>&, std::int64_t, Scratch&,
                                          float*) const;
extern template double DoubleRow::compute(const SignalView<float>&, std::int64_t, Scratch&,
                                          float*) const;

}  // namespace melflow
