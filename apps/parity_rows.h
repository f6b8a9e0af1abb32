// melflow's own rows of a signal, and how far they may be from a library's.
//
// In:  options, samples; a row of the library's [columns].
// Out: rows [frames, columns]; of a row, the value that comes nearest to its limit or passes it.
//
// Beyond the library's own error a value may differ by the largest of
//   - atol + rtol |value|;
//   - kFloatShare of the row's largest value; for a level, what an error of kFloatShare of the
//     frame's largest amplitude comes to: single precision computes every bin of a spectrum with an
//     error in proportion to the largest, so a band far below it has few good digits anywhere;
//   - for a level, kFilterShare of the two bands beside it: filters in single precision take that
//     much too much or too little of them;
//   - for a level, kUnnoted: own errors up to that are not in the golden vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apps/parity_vectors.h"

namespace melflow {

constexpr double kFloatShare = 1e-6;
/// tests/golden/filterbanks.json: weights of SpeechBrain and Kaldi are off by up to 1e-5 of a peak.
constexpr double kFilterShare = 1e-5;
/// In the unit of the level.
constexpr double kUnnoted = 1e-4;

struct ParityRows {
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;
  /// How a row was normalised, column by column: (x - mean) / divisor.
  std::vector<double> mean, divisor;
};

/// The backend at hand: MelKernel on the CPU.
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const std::int16_t> samples);
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const float> samples);

/// One value of ours and of theirs.
struct ParityValue {
  std::int64_t frame = -1;  ///< -1: nothing was compared
  std::size_t column = 0;
  double ours = 0, theirs = 0;
  double own_error = 0;  ///< of theirs
  double limit = 0;      ///< beyond that

  /// |ours - theirs| less the library's own error.
  [[nodiscard]] double error() const;
  /// 1 is the limit; infinite for what is no number.
  [[nodiscard]] double share() const;
  [[nodiscard]] bool passes() const { return share() <= 1.0; }
};

class ParityJudge {
 public:
  /// `ours` outlives this.
  ParityJudge(const MelOptions& options, bool is_cepstrum, const ParityRows& ours,
              const ParityTolerance& tolerance);
  /// The value of the largest share of its limit.
  [[nodiscard]] ParityValue worst(const ParityRow& theirs) const;

 private:
  [[nodiscard]] std::vector<double> float_limits(const std::vector<double>& theirs) const;

  const ParityRows& ours_;
  const ParityTolerance& tolerance_;
  bool is_level_, is_banded_;
  std::size_t energy_column_;  ///< past the end without one
  double log_factor_, power_;
};

/// The worst value of a case of derivatives.
ParityValue worst_delta(const ParityDelta& delta, const ParityTolerance& tolerance);

}  // namespace melflow
