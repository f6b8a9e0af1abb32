// mel_filterbank.h - mel scales and the triangles on them.
//
// In:  a resolved MelOptions (mel_options.h).
// Out: per band the first bin, the number of bins and their weights; only positive weights.
#pragma once

#include <vector>

#include "stages/features/mel/mel_options.h"

namespace melflow {

struct MelBand {
  int first_bin = 0;
  int count = 0;           // bins with a positive weight; 0 for an empty band
  int offset = 0;          // of this band's weights in Filterbank::weights
  double centre_hz = 0.0;  // peak of the triangle
};

struct Filterbank {
  std::vector<MelBand> bands;   // [n_mels]
  std::vector<double> weights;  // bands one after another
};

// Makes the filters of resolved options. A band whose filter lies between two bins has no weight.
// Sources of scales, triangles and norms: mel_filterbank.cpp.
Filterbank make_filterbank(const MelOptions& options);

}  // namespace melflow
