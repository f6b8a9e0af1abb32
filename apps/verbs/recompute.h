// Compares rows of an output with those that its pipeline computes from the audio now.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "config/load.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

struct Recomputed {
  std::vector<std::size_t> same, other;  ///< files of the output
  /// Files that give the rows of another file of the output, with that.
  std::vector<std::pair<std::size_t, std::size_t>> exchanged;
  std::vector<std::size_t> changed;  ///< files whose audio has changed since
  /// Files that had rows then and have none now, with the reason.
  std::vector<std::pair<std::size_t, std::string>> lost;
};

/// Draws files that have rows and a hash, the same ones for the same `seed`, and computes them by
/// the configuration in the output, read with `options`. Throws RunError where they cannot be
/// compared.
Recomputed recompute(const FeatureFile& file, const CountOrShare& sample, std::uint64_t seed,
                     const LoadOptions& options);

}  // namespace melflow
