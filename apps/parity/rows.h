// Computes melflow's own rows of a signal, and how far they may be from a library's.
//
// In:  options, samples; a row of the library's [columns].
// Out: rows [frames, columns]; for a row, the value that comes closest to its limit or exceeds it.
//
// Beyond the library's own error a value may differ by the largest of
//   - atol + rtol |value|; for linear values without atol, which would accept every quiet band;
//   - kFilterShare of the two adjacent bands: filters in single precision are wrong by that much;
//   - kUnnoted: own errors up to that size are not in the golden vectors, in the level's unit or
//     relative to a linear value. It does not apply to linear values of a library in double
//     precision, nor where all own errors are measured;
//   - the effect of an error in proportion to the frame's largest amplitude, as transforms have in
//     every bin: kFloatShare where our rows, or theirs with an unknown error, are in single
//     precision, else kDoubleShare;
//   - for cepstra, whose levels are floats in any case, kFloatShare of the largest.
// So rows in double precision are held to the library's own error at any level, and rows in single
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
/// The relative error of a library's own error, because the vectors store it with two digits.
constexpr double kNotedDigits = 0.05;

struct ParityRows {
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;
  /// The mean and divisor that normalised each column: (x - mean) / divisor.
  std::vector<double> mean, divisor;
};

/// Computes melflow's rows with MelKernel on the CPU.
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const std::int16_t> samples);
ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const float> samples);

/// A value of melflow's rows, and the library's value.
struct ParityValue {
  std::int64_t frame = -1;  ///< -1: nothing was compared
  std::size_t column = 0;
  double ours = 0, theirs = 0;
  double own_error = 0;                                              ///< of the library's value
  double limit = 0;                                                  ///< in addition to own_error
  MelOptions::Precision precision = MelOptions::Precision::float32;  ///< of our value
  double largest = 0;  ///< largest |ours - theirs| of all values among which this is the worst

  /// |ours - theirs| less the library's own error.
  [[nodiscard]] double error() const;
  /// The error as a share of the limit; infinite for NaN and infinite values.
  [[nodiscard]] double share() const;
  [[nodiscard]] bool passes() const { return share() <= 1.0; }
};

/// The precision of a library's rows.
struct TheirPrecision {
  bool is_double = false;    ///< whether its transform is in double precision
  bool is_noted = false;     ///< whether rows come with their own error where it is significant
  bool is_measured = false;  ///< whether rows come with the own errors of all values
};

class ParityJudge {
 public:
  /// `ours`: rows with these options; must outlive this object.
  ParityJudge(const MelOptions& options, bool is_cepstrum, const ParityRows& ours,
              const ParityTolerance& tolerance, TheirPrecision theirs);
  /// Returns how far each value may be from the library's, in addition to the library's own error.
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
  std::size_t energy_column_;  ///< past the end where there is none
  double log_factor_, power_;
};

/// The worst value of a case of derivatives.
ParityValue worst_delta(const ParityDelta& delta, const ParityTolerance& tolerance);

}  // namespace melflow
