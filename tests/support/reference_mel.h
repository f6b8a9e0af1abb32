// reference_mel.h - a mel front end straight from its definition, in double, for tests.
//
// In:  MelOptions and an utterance's samples (full scale 1).
// Out: rows [frames, columns].
//
// Nothing is shared with the code under test but the options struct: the transform is the sum of
// the definition, filters are full triangles, a padded signal is built as a whole and cut into
// frames. Dither is not part of it.

#pragma once

#include <cstdint>
#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow::reference {

using Rows = std::vector<std::vector<double>>;

// [n_fft]: the window in its place, with the factor of `normalized`.
std::vector<double> window(const MelOptions& o);
// [n_mels][n_bins]
Rows filterbank(const MelOptions& o);
// Index of the sample that stands at i of an utterance of n samples; -1 for a zero.
std::int64_t padded_index(std::int64_t i, std::int64_t n, MelOptions::PadMode mode);
// Everything up to and including the log.
Rows mel(const MelOptions& o, const std::vector<double>& samples);
// 2 n_fft - 1 samples, all 0 but for one at full scale: each frame of n_fft samples has it in
// another place.
std::vector<std::int16_t> click(int n_fft);
// Linear bands of its frames, center: false. The power is the same in all bins, that of the
// sample times the window, so that nothing is transformed.
Rows click_rows(const MelOptions& o);
// Reference = maximum, top_db and normalisation of a whole utterance.
void finish(const MelOptions& o, Rows& rows);
// Type 2 or 3, with scipy's factors; [coefficients] of one row.
std::vector<double> dct(const std::vector<double>& row, int count, int type, bool ortho);

}  // namespace melflow::reference
