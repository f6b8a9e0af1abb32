// pcen_step.h - per-channel energy normalisation of linear bands (Wang et al. 2017, Lostanlen et
// al. 2019).
//
// In:  rows [n, columns] of one utterance: powers or amplitudes, 0 or more.
// Out: as many rows: with the smoothed m[t] = (1 - b) m[t-1] + b x[t], m[-1] = 1, of each column
//        s = (eps + m)^-gain
//        (x s + bias)^power - bias^power     power and bias above 0
//        ln(1 + x s)                         power 0
//        (x s)^power                         bias 0
//      as librosa.pcen computes it, m[-1] = 1 being scipy.signal.lfilter_zi. Computed in double.
//      NaN stays NaN, from its frame on.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "stages/features/mel/option_table.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {

struct PcenOptions {
  double gain = 0.98;
  double bias = 2.0;
  double power = 0.5;
  double time_constant = 0.4;  // [s] of the smoothing
  std::optional<double> b;     // of the smoothing; not set: pcen_coefficient() of time_constant
  double eps = 1e-6;

  using Member = std::variant<double PcenOptions::*, std::optional<double> PcenOptions::*>;
};

// Returns b = (sqrt(1 + 4 T^2) - 1) / (2 T^2), where T is time_constant [s] in frames
// (librosa.pcen).
double pcen_coefficient(double time_constant, double frames_per_second);

// Rows stay [n, columns]. Requires `options.b`.
std::shared_ptr<const FinishStep> pcen_step(const PcenOptions& options);

}  // namespace melflow
