// fit_step.h - gives an utterance a certain number of rows: adds rows of one value at its end, or
// leaves rows out there.
//
// In:  rows [n, columns] of one utterance.
// Out: rows [fitted_rows(n), columns].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct FitOptions {
  // What becomes of rows beyond the last whole multiple.
  enum class Rest { fill, drop };
  friend constexpr auto names(Rest) { return choice_names("fill", "drop"); }

  std::optional<int> rows = {};      // exactly as many; not set: as the following say
  std::optional<int> multiple = {};  // of which the number of rows, with `extra`, becomes one
  int extra = 0;                     // rows that are always added
  Rest rest = Rest::fill;
  double value = 0.0;  // of the added rows

  using Member = std::variant<int FitOptions::*, std::optional<int> FitOptions::*,
                              double FitOptions::*, Rest FitOptions::*>;
};

std::int64_t fitted_rows(const FitOptions& options, std::int64_t rows);

std::shared_ptr<const FinishStep> fit_step(const FitOptions& options);

}  // namespace melflow
