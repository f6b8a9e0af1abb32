// cepstrum.h - mel frequency cepstral coefficients of rows of levels.
//
// In:  rows [n, columns] of log mel values, perhaps with a column of energy.
// Out: rows [n, n_mfcc].
#pragma once

#include <memory>
#include <variant>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct CepstrumOptions {
  enum class Norm { none, ortho };
  friend constexpr auto names(Norm) { return choice_names("none", "ortho"); }
  enum class LifterStyle { librosa, kaldi };
  friend constexpr auto names(LifterStyle) { return choice_names("librosa", "kaldi"); }

  int n_mfcc = 13;
  int dct_type = 2;  // 2 or 3, as scipy.fft.dct
  Norm norm = Norm::ortho;
  double lifter = 0.0;  // 0: none
  // Coefficient i is multiplied by 1 + L/2 sin(pi (i + 1) / L) in librosa, and by 1 + L/2 sin(pi i
  // / L) in Kaldi and HTK, which leave coefficient 0 unchanged.
  LifterStyle lifter_style = LifterStyle::librosa;
  // Coefficient 0, or the energy that replaces it, comes last; without an energy it is scaled by
  // the root of 2. Kaldi's htk-compat.
  bool htk_compat = false;

  using Member =
      std::variant<int CepstrumOptions::*, double CepstrumOptions::*, bool CepstrumOptions::*,
                   Norm CepstrumOptions::*, LifterStyle CepstrumOptions::*>;
};

// Rows [n, columns] become rows [n, n_mfcc]. `columns` includes the energy, which is column
// `energy_column`; -1: there is none. The energy replaces coefficient 0 (Kaldi's use-energy).
std::shared_ptr<const FinishStep> cepstrum_step(const CepstrumOptions& options, int columns,
                                                int energy_column);

}  // namespace melflow
