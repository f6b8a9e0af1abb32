// Compares a golden case, derivatives, a recording, or the statistics of all recordings with those
// of a library. Rows are computed and compared twice, in single and in double precision.
#pragma once

#include <array>

#include "apps/parity/reference.h"
#include "apps/parity/report.h"

namespace melflow {

/// The preset's name in reports on derivatives.
constexpr const char* kDeltas = "deltas";

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance);
ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance);

/// Compares recordings, one file at a time; then the mean and the standard deviation of each column
/// over all their rows, as an output stores them, with those of the library's rows.
class RecordingCheck {
 public:
  /// All arguments must outlive this object. `options`: those of `preset`, perhaps changed.
  RecordingCheck(std::string preset, const MelOptions& options, const ReferenceAnswer& answer,
                 const ParityTolerance& tolerance);

  /// Compares a recording. `theirs`: the library's rows of the same samples.
  ParityResult check(const ParityRecording& recording, const ReferenceRows& theirs);
  /// Compares the statistics of the recordings checked so far.
  [[nodiscard]] std::array<ParityResult, 2> statistics() const;

 private:
  struct Sums;

  std::string preset_;
  const MelOptions& options_;
  const ReferenceAnswer& answer_;
  const ParityTolerance& tolerance_;
  /// By precision.
  std::array<std::shared_ptr<Sums>, 2> sums_;
  std::int64_t frames_ = 0;
};

}  // namespace melflow
