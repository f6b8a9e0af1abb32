// The filterbank of a plan as a matrix.
#pragma once

#include <algorithm>
#include <vector>

#include "stages/features/mel/mel_plan.h"

namespace melflow::test {

/// Returns [n_mels, n_bins], zeros included.
inline std::vector<float> dense_weights(const MelPlan& plan) {
  const auto bins = static_cast<std::size_t>(plan.n_bins());
  std::vector<float> dense(plan.bands().size() * bins, 0.0F);
  for (std::size_t m = 0; m < plan.bands().size(); ++m) {
    const MelBand& band = plan.bands()[m];
    std::copy_n(plan.weights().begin() + band.offset, band.count,
                dense.begin() + static_cast<std::ptrdiff_t>(m * bins) + band.first_bin);
  }
  return dense;
}

}  // namespace melflow::test
