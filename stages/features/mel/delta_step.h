// delta_step.h - appends time derivatives to features.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [n, columns * (order + 1)]: the features, their first derivatives, their second, ...
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct DeltaOptions {
  // regression: slope of the regression line over `width` frames, with the end frames repeated;
  //   order k is the slope of order k - 1 (torchaudio.functional.compute_deltas, HTK).
  // kaldi: the same slopes combined into one filter, so that only frames of the features are
  //   repeated at the ends (Kaldi's add-deltas).
  // librosa: derivative of the polynomial of degree `order` fitted to `width` frames; the end
  //   rows use the fit to the outermost `width` frames (librosa.feature.delta, mode interp).
  enum class Method { regression, kaldi, librosa };
  friend constexpr auto names(Method) { return choice_names("regression", "kaldi", "librosa"); }

  int order = 2;
  int width = 5;  // [frames], odd
  Method method = Method::regression;

  using Member = std::variant<int DeltaOptions::*, Method DeltaOptions::*>;
};

// Rows [n, columns] become rows [n, columns * (order + 1)]. With Method::librosa, n is at least
// `width`.
std::shared_ptr<const FinishStep> delta_step(const DeltaOptions& options);

// Returns [width] factors for values at -width/2 ... width/2. The sum of the products is derivative
// `order`, at position `at`, of the polynomial of degree `degree` fitted to the values (Savitzky
// and Golay 1964).
std::vector<double> savitzky_golay(int width, int degree, int order, double at);

}  // namespace melflow
