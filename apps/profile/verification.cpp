#include "apps/profile/verification.h"

#include <algorithm>
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
  constexpr double kLeast = 0.5, kMost = 1.5;  // share of the likely gain
  out.reached = (out.measured - 1) / (out.predicted - 1);
  out.agrees = out.reached >= kLeast && out.reached <= kMost;
  out.is_shown = out.least >= 1;
  out.without = std::move(without);
  out.with = std::move(with);
  return out;
}

}  // namespace melflow
