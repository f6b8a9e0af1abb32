// fit_step.h - gives an utterance a certain number of rows: adds rows of one value at its end, or
// leaves rows out there.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [fitted_rows(n), columns].
#pragma once

#include <cstdint>
#include <memory>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct FitOptions {
  // What becomes of rows beyond the last whole multiple.
  enum class Rest { fill, drop };

  std::int64_t rows = 0;      // exactly as many; 0: as the following say
  std::int64_t extra = 0;     // rows that are always added
  std::int64_t multiple = 1;  // of which the number of rows, with `extra`, becomes one
  Rest rest = Rest::fill;
  double value = 0.0;  // of the added rows
};

std::int64_t fitted_rows(const FitOptions& options, std::int64_t rows);

std::shared_ptr<const FinishStep> fit_step(const FitOptions& options);

}  // namespace melflow
