#include "apps/profile/verification.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/profile/figures.h"

namespace melflow {

Verification verify(const Hint& hint, double before, std::vector<double> without,
                    std::vector<double> with) {
  Verification out;
  out.hint = hint;
  out.predicted = hint.likely / before;
  out.predicted_low = hint.low / before;
  out.predicted_high = hint.high / before;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < without.size(); ++i) ratios.push_back(with[i] / without[i]);
  out.measured = median(ratios);
  out.least = *std::min_element(ratios.begin(), ratios.end());
  out.greatest = *std::max_element(ratios.begin(), ratios.end());
  constexpr double kNear = 0.1;
  const bool is_within = out.measured >= out.predicted_low && out.measured <= out.predicted_high;
  const bool is_near = std::abs(out.measured - out.predicted) <= kNear * out.predicted;
  const bool is_opposite = (out.predicted - 1) * (out.measured - 1) < 0;
  out.agrees = (is_within || is_near) && !is_opposite;
  out.is_shown = out.predicted <= 1 || out.least >= 1;
  out.without = std::move(without);
  out.with = std::move(with);
  return out;
}

}  // namespace melflow
