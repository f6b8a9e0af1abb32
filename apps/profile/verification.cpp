#include "apps/profile/verification.h"

#include <algorithm>
#include <utility>

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
  std::sort(ratios.begin(), ratios.end());
  const std::size_t half = ratios.size() / 2;
  out.measured = ratios.size() % 2 == 1 ? ratios[half] : (ratios[half - 1] + ratios[half]) / 2;
  out.least = ratios.front();
  out.greatest = ratios.back();
  out.agrees = out.least <= out.predicted_high && out.greatest >= out.predicted_low;
  out.without = std::move(without);
  out.with = std::move(with);
  return out;
}

}  // namespace melflow
