// mel_window.h - analysis windows.
//
// In:  a resolved MelOptions (mel_options.h).
// Out: win_length values, in double.
#pragma once

#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

// [win_length], without any normalisation. With p = win_length where the window is periodic, else
// win_length - 1, and x = i / p for value i:
//   hann, povey         h = 1/2 - 1/2 cos(2 pi x); h^0.85 (Kaldi's feature-window.cc)
//   hamming             a - (1 - a) cos(2 pi x), a = hamming_alpha (scipy general_hamming,
//                       torch.hamming_window)
//   blackman            c - 1/2 cos(2 pi x) + (1/2 - c) cos(4 pi x), c = blackman_coeff (Kaldi's
//                       blackman_coeff; 0.42 in scipy and torch)
//   blackman_harris     four terms (Harris 1978; scipy blackmanharris)
//   nuttall             four terms, 0.3635819, 0.4891775, 0.1365995, 0.0106411 (scipy nuttall)
//   kaiser, gauss       scipy kaiser with kaiser_beta; scipy gaussian with gauss_std
//   bartlett            1 - |2 x - 1| (scipy bartlett, torch.bartlett_window)
//   cosine              sin(pi (i + 1/2) / (p + 1)) (scipy cosine)
//   sine                sin(pi x) (Kaldi)
//   tukey               1/2 - 1/2 cos(2 pi d / a) where d = min(x, 1 - x) < a / 2, else 1;
//                       a = tukey_alpha (scipy tukey)
//   values              window_values
// A window of one sample is 1, unless window_values gives it.
std::vector<double> make_window(const MelOptions& options);

}  // namespace melflow
