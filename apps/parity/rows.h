// melflow's own rows of a signal, and how far they may be from a library's.
//
// In:  options, samples; a row of the library's [columns].
// Out: rows [frames, columns]; of a row, the value that comes nearest to its limit or passes it.
//
// Beyond the library's own error a value may differ by the largest of
//   - atol + rtol |value|; of linear values without atol, which would let every quiet band pass;
//   - kFilterShare of the two bands beside it: filters in single precision take that much too much
//     or too little of them;
//   - kUnnoted: own errors up to that, of a level in its unit, of a linear value in parts of it,
//     are not in the golden vectors; of a library in double precision there are none in linear
//     values, and where all own errors are measured there are none at all;
//   - what an error of a share of the frame's largest amplitude comes to, since a transform has in
//     every bin an error in proportion to the largest: kFloatShare where ours, or theirs with an
//     error that is not known, are in single precision, else kDoubleShare;
//   - of cepstra, whose levels are floats in any case, kFloatShare of the largest.
// So rows in double precision are held to the library's own error at any depth, and rows in single
// precision to their share of the peak.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apps/parity/vectors.h"

namespace melflow {

constexpr double kFloatShare = 1e-6;
constexpr double kDoubleShare = 1e-15;
/// tests/golden/filterbanks.json: weights of SpeechBrain and Kaldi are off by up to 1e-5 of a peak.
constexpr double kFilterShare = 1e-5;
constexpr double kUnnoted = 1e-4;
/// The relative error of a library's own error, which the vectors store with two digits.
constexpr double kNotedDigits = 0.05;

struct ParityRows {
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;
  /// The mean and divisor by which each column was normalised: (x - mean) / divisor.
  std::vector<double> mean, divisor;
};

/// Computes melflow's rows, by MelKernel on the CPU.
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const std::int16_t> samples);
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const float> samples);

/// A value of melflow's rows, and the library's.
struct ParityValue {
  std::int64_t frame = -1;  ///< -1: nothing was compared
  std::size_t column = 0;
  double ours = 0, theirs = 0;
  double own_error = 0;                                              ///< of theirs
  double limit = 0;                                                  ///< beyond that
  MelOptions::Precision precision = MelOptions::Precision::float32;  ///< of ours
  double largest = 0;  ///< |ours - theirs| at most, of all values that this is the worst of

  /// |ours - theirs| less the library's own error.
  [[nodiscard]] double error() const;
  /// The error as a share of the limit; infinite for values that are no numbers.
  [[nodiscard]] double share() const;
  [[nodiscard]] bool passes() const { return share() <= 1.0; }
};

/// The precision of a library's rows.
struct TheirPrecision {
  bool is_double = false;    ///< whether its transform is in double precision
  bool is_noted = false;     ///< whether rows come with their own error where it is not negligible
  bool is_measured = false;  ///< whether rows come with the own errors of all values
};

class ParityJudge {
 public:
  /// `ours`, rows with these options, must outlive this object.
  ParityJudge(const MelOptions& options, bool is_cepstrum, const ParityRows& ours,
              const ParityTolerance& tolerance, TheirPrecision theirs);
  /// The limit of each value's distance from the library's, beyond the library's own error.
  [[nodiscard]] std::vector<double> limits(const std::vector<double>& theirs) const;
  /// The value with the largest share of its limit.
  [[nodiscard]] ParityValue worst(const ParityRow& theirs) const;

 private:
  [[nodiscard]] std::vector<double> float_limits(const std::vector<double>& theirs) const;

  const ParityRows& ours_;
  const ParityTolerance& tolerance_;
  MelOptions::Precision precision_;
  bool is_cepstrum_, is_level_, is_banded_;
  double share_, unnoted_;
  std::size_t energy_column_;  ///< past the end without one
  double log_factor_, power_;
};

/// The worst value of a case of derivatives.
ParityValue worst_delta(const ParityDelta& delta, const ParityTolerance& tolerance);

}  // namespace melflow
