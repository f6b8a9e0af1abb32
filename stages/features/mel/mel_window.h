// mel_window.h - analysis windows.
//
// In:  a resolved MelOptions (mel_options.h).
// Out: win_length values, in double.
#pragma once

#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

// [win_length], without any normalisation. hann, hamming and blackman with the coefficients of
// torch and scipy (0.5; 0.54 and 0.46; 0.42, 0.5 and 0.08), blackman_harris with four terms
// (Harris 1978), kaiser as in scipy, gauss with the standard deviation gauss_std, povey as in
// Kaldi: hann^0.85. One sample is 1.
std::vector<double> make_window(const MelOptions& options);

}  // namespace melflow
