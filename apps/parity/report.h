// The results of verify-parity, and how they are printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/parity/rows.h"

namespace melflow {

/// The result of one case of the golden vectors, one of the user's files, or all cases of a preset.
struct ParityResult {
  std::string name, preset;
  std::vector<std::string> libraries;  ///< "librosa 0.10.2.post1"
  std::size_t cases = 1, left_out = 0;
  std::int64_t frames = 0;  ///< number of frames compared
  ParityValue worst;        ///< the value with the largest share of its limit
  std::string worst_case;
  double largest = 0;  ///< difference of any value
  bool passed = true;
  bool is_of_rows = true;  ///< false: statistics, whose values have a column and no frame
  std::string reason;  ///< why it fails whatever the values, or why there was nothing to compare

  /// Marks it as failed for the reason `why`.
  void fail(const std::string& why);
  void take(const ParityValue& value);
};

/// Combines the results of each preset; the presets stay in their order.
std::vector<ParityResult> by_preset(const std::vector<ParityResult>& cases);

/// A table with a line for each of `lines`, headed by `what` ("preset"), followed by every failure
/// of `cases` with its row and value.
std::string parity_text(const std::string& what, const std::vector<ParityResult>& lines,
                        const std::vector<ParityResult>& cases, const ParityVectors& vectors);
nlohmann::ordered_json parity_json(const std::vector<ParityResult>& results,
                                   const ParityVectors& vectors);

}  // namespace melflow
