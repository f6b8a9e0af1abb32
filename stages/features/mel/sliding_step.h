// sliding_step.h - subtracts from each row the mean of the rows around it, as Kaldi's
// apply-cmvn-sliding and torchaudio.functional.sliding_window_cmn.
//
// In:  rows [n, columns] of one utterance.
// Out: as many rows. With mean m and v = max(1e-10, mean of squares - m^2) of each column over the
//      window of a row: x - m, or with `variance` (x - m) / sqrt(v), and 0 for a window of one row.
//
// The sums of a window follow from those of the window before, in double, from the first row of
// the utterance on. They hold a window of rows, however long the utterance is.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct SlidingOptions {
  int window = 600;  // [rows]
  // true: rows t - window / 2 to t - window / 2 + window - 1, moved inwards at the ends of the
  // utterance. false: the row and `window` rows before it, but the first `min_window` rows where
  // these are more.
  bool center = false;
  int min_window = 100;
  bool variance = false;

  using Member = std::variant<int SlidingOptions::*, bool SlidingOptions::*>;
};

// Returns the first row of the window of row t and the one behind its last, both within the
// utterance.
std::pair<std::int64_t, std::int64_t> sliding_window(const SlidingOptions& options, std::int64_t t,
                                                     std::int64_t rows);

std::shared_ptr<const FinishStep> sliding_step(const SlidingOptions& options);

}  // namespace melflow
