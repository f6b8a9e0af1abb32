// mel_loops.h - the inner loops of the mel kernel, compiled once for each instruction set.
//
// In:  windowed samples or a spectrum, and the tables of one plan.
// Out: power spectrum [n_bins], then one row [n_mels], or [n_bins] for a spectrogram.
//
// Which vector lane a value sits in follows from its bin or band alone, and there are no scalar
// tails, so a frame's bytes never depend on anything but its samples.

#pragma once

#include <cstdint>
#include <vector>

#include "stages/raii/fftw.h"
#include "stages/simd8.h"

namespace melflow::loops {

using simd::lanes;

// In front of bin 0 of spectrum and power, so that whole vectors may begin below it; at least
// `lanes` more bins follow the last one. Filled with zeros. [floats], keeps the alignment.
constexpr int front = 16;

// One row's settings, all of them constant for a run.
struct RowTables {
  int n_bins = 0;
  int n_mels = 0;  // 0: the bins themselves are the row
  int half = 0;    // n_fft/2 when n_fft is even, else 0
  double power = 2.0;
  float power_offset = 0.0F;
  // Even n_fft: re and im of -i exp(-2 pi i k / n_fft), eight k of each in turn, folded_order.
  AlignedBuffer twiddle;
  // Eight bands make a group, the last one filled up with empty bands. All of a group's bands
  // take its number of vectors, from first_bin on, their weights padded with zeros.
  std::vector<std::int32_t> first_bin;  // [groups * lanes]
  std::vector<std::int32_t> vectors;    // [groups]
  AlignedBuffer weights;                // [groups][lanes][vectors][lanes]
  float floor = 0.0F;                   // of a value before its level; 0: none
  bool log = false;
  float amin = 0.0F;
  float offset = 0.0F;
  float factor = 1.0F;
  float shift = 0.0F;
};

// The loops for one instruction set.
struct Loops {
  const char* instruction_set;
  // out[i] = samples[i] * window[i], i < n. (samples, window, n, out)
  void (*window_int16)(const std::int16_t*, const float*, int, float*);
  void (*window_float)(const float*, const float*, int, float*);
  // (tables, spectrum, power, row): spectrum is the transform of the frame's halves for an even
  // n_fft (see power_of_halves), else of the frame; both are overwritten.
  void (*spectrum_to_row)(const RowTables&, float*, float*, float*);
  // Natural logarithm. (values, n, out)
  void (*ln)(const float*, std::int64_t, float*);
};

const Loops& baseline_loops();
const Loops& best_loops();  // of this processor

}  // namespace melflow::loops
