// Checks a predicted gain by pairs of runs without and with the change.
#pragma once

#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

struct Verification {
  Hint hint;
  double predicted = 0, predicted_low = 0, predicted_high = 0;  ///< times as fast as without
  std::vector<double> without, with;  ///< files/s while the stages worked, in the order of the runs
  /// Of the pairs: the middle one, the least and the greatest [times as fast].
  double measured = 0, least = 0, greatest = 0;
  double reached = 0;     ///< share of the likely gain that the middle pair has
  bool agrees = false;    ///< half of that gain to one and a half times it
  bool is_shown = false;  ///< no pair was slower
};

/// `without` and `with` have the same number of runs, at least one, each greater than 0.
/// `before`: the files/s that the hint was made from, of which it promises more.
Verification verify(const Hint& hint, double before, std::vector<double> without,
                    std::vector<double> with);

}  // namespace melflow
