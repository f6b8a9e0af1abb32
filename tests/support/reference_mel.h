// reference_mel.h - a mel front end straight from its definition, in double, for tests.
//
// In:  MelOptions and an utterance's samples (full scale 1).
// Out: rows [frames, columns].
//
// Shares only the options struct with the code under test: the transform is the sum of the
// definition, filters are full triangles, a padded signal is built as a whole and cut into frames.
// Dither is not included.

#pragma once

#include <cstdint>
#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow::reference {

using Rows = std::vector<std::vector<double>>;

// [n_fft]: the window at its position, with the factor of `normalized`.
std::vector<double> window(const MelOptions& o);
// [n_mels][n_bins]
Rows filterbank(const MelOptions& o);
// Returns the index of the sample at position i of an utterance of n samples; -1 for a zero.
std::int64_t padded_index(std::int64_t i, std::int64_t n, MelOptions::PadMode mode);
// All steps up to and including the log.
Rows mel(const MelOptions& o, const std::vector<double>& samples);
// 2 n_fft - 1 samples, all 0 except one at full scale, which is at another position in each frame
// of n_fft samples.
std::vector<std::int16_t> click(int n_fft);
// Linear bands of the click's frames, center: false. All bins have the same power, that of the
// sample times the window, so no transform is needed.
Rows click_rows(const MelOptions& o);
// Applies a reference of maximum, top_db and normalisation to a whole utterance.
void finish(const MelOptions& o, Rows& rows);
// Type 2 or 3, with scipy's factors; returns [coefficients] of one row.
std::vector<double> dct(const std::vector<double>& row, int count, int type, bool ortho);

}  // namespace melflow::reference
