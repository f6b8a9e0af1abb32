// Compares a golden case, derivatives or a recording with a library's rows, and prints the results.
// Rows are computed and compared twice, in single and in double precision.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/parity/reference.h"
#include "apps/parity/rows.h"

namespace melflow {

/// The result of one case of the golden vectors, one of the user's files, or all cases of a preset.
struct ParityResult {
  std::string name, preset;
  std::vector<std::string> libraries;  ///< such as "librosa 0.10.2.post1"
  std::size_t cases = 1, left_out = 0;
  std::int64_t frames = 0;  ///< number of frames compared
  ParityValue worst;        ///< the value with the largest share of its limit
  std::string worst_case;
  double largest = 0;  ///< the largest difference of any value
  bool passed = true;
  std::string reason;  ///< why it fails regardless of the values, or why nothing could be compared

  /// Marks it as failed for the reason `why`.
  void fail(const std::string& why);
  void take(const ParityValue& value);
};

/// Combines the results of each preset; the presets stay in their order.
std::vector<ParityResult> by_preset(const std::vector<ParityResult>& cases);

/// Returns a table with a line for each of `lines`, headed by `what` ("preset"), followed by every
/// failure of `cases` with its row and value.
std::string parity_text(const std::string& what, const std::vector<ParityResult>& lines,
                        const std::vector<ParityResult>& cases, const ParityVectors& vectors);
nlohmann::ordered_json parity_json(const std::vector<ParityResult>& results,
                                   const ParityVectors& vectors);

/// The preset's name in reports on derivatives.
constexpr const char* kDeltas = "deltas";

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance);
ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance);

/// Compares a recording. `options`: the preset's, perhaps changed; `theirs`: the library's rows of
/// the same samples.
ParityResult check_recording(const std::string& preset, const MelOptions& options,
                             const ParityTolerance& tolerance, const ParityRecording& recording,
                             const ParitySource& library, const ReferenceRows& theirs);

}  // namespace melflow
