// delta_step.h - time derivatives of features, appended to them.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [n, columns * (order + 1)]: the features, their first derivatives, their second, ...
#pragma once

#include <memory>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct DeltaOptions {
  // regression: slope of the regression line over `width` frames, the end frames repeated; higher
  //   orders are those of the lower one (torchaudio.functional.compute_deltas, HTK).
  // kaldi: the same slopes folded into one filter, so that only frames of the features are repeated
  //   at the ends (Kaldi's add-deltas).
  // librosa: derivative of the polynomial of degree `order` fitted to `width` frames; at the ends
  // of
  //   that fitted to the outermost `width` frames (librosa.feature.delta, mode interp).
  enum class Method { regression, kaldi, librosa };

  int order = 2;
  int width = 5;  // [frames], odd
  Method method = Method::regression;
};

std::shared_ptr<const FinishStep> delta_step(const DeltaOptions& options);

// Factors of `width` values at -width/2 ... width/2 that give derivative `order` at `at` of the
// polynomial of degree `degree` fitted to them (Savitzky and Golay 1964).
std::vector<double> savitzky_golay(int width, int degree, int order, double at);

}  // namespace melflow
