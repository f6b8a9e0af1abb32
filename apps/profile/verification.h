// Checks a predicted gain by pairs of runs without and with the change.
#pragma once

#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

struct Verification {
  Hint hint;
  double predicted = 0, predicted_low = 0, predicted_high = 0;  ///< speed-up by the change
  std::vector<double> without, with;  ///< files/s while stages worked, in the order of the runs
  /// Speed-ups of the pairs: the median, the smallest and the largest.
  double measured = 0, least = 0, greatest = 0;
  double reached = 0;     ///< share of the likely gain that the median pair reached
  bool agrees = false;    ///< the median reached half of that gain to one and a half times it
  bool is_shown = false;  ///< no pair was slower
};

/// Verifies a hint. `without` and `with` have the same length, at least one; every value is greater
/// than 0. `before`: the files/s on which the hint was based.
Verification verify(const Hint& hint, double before, std::vector<double> without,
                    std::vector<double> with);

}  // namespace melflow
