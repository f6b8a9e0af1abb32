// mel_filterbank.h - mel scales and the triangles on them.
//
// In:  a resolved MelOptions (mel_options.h).
// Out: per band the first bin, the number of bins and their weights: of triangles only positive
//      ones, of given filters all from the first to the last that is not 0.
#pragma once

#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

struct MelBand {
  int first_bin = 0;
  int count = 0;           // bins from the first to the last with a weight; 0 for an empty band
  int offset = 0;          // of this band's weights in Filterbank::weights
  double centre_hz = 0.0;  // peak of the triangle; of a given filter its bin of largest weight
};

struct Filterbank {
  std::vector<MelBand> bands;   // [n_mels]
  std::vector<double> weights;  // bands one after another
};

// Returns the given filters as [n_mels][n_bins].
std::vector<double> filter_matrix(const MelOptions& options);

// Makes the filters of resolved options. A band whose filter lies between two bins has no weight.
// Sources of scales, triangles and norms: mel_filterbank.cpp.
Filterbank make_filterbank(const MelOptions& options);

}  // namespace melflow
