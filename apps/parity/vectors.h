// The golden vectors: rows of features that the libraries themselves computed.
//
// In:  the JSON file that tests/golden/make_presets.py wrote.
// Out: its cases, with the options of each as melflow reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stages/features/mel/cepstrum.h"
#include "stages/features/mel/delta_step.h"
#include "stages/features/mel/mel_options.h"

namespace melflow {

/// A value agrees when |ours - theirs| <= atol + rtol |theirs|, as in numpy.allclose.
struct ParityTolerance {
  double atol = 1e-4, rtol = 0.0;
  std::string source = "melflow's own: the library has no test of its values";
};

struct ParityRow {
  std::int64_t frame = 0;
  std::vector<double> values;
  /// The library's own error compared with double precision; empty where it is negligible.
  std::vector<double> own_error;
};

/// The library that computed the expected rows.
struct ParitySource {
  std::string library, version, function;
  [[nodiscard]] std::string text() const {
    return library + (version.empty() ? "" : " " + version);
  }
};

struct ParityCase {
  std::string name, preset;
  ParitySource source;
  MelOptions options;
  std::optional<CepstrumOptions> cepstrum;
  std::string signal;
  std::int64_t samples = 0;
  std::string left_out;  ///< why the library has no rows to compare; "" when it has
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<ParityRow> rows;
};

/// Derivatives of a small matrix; row t is frame t.
struct ParityDelta {
  std::string name;
  ParitySource source;
  DeltaOptions options;
  std::vector<std::vector<double>> input, output;  ///< [frames][columns]
};

struct ParityVectors {
  std::vector<std::pair<std::string, ParityTolerance>> presets;  ///< in the order of the file
  std::vector<ParityCase> cases;
  std::vector<ParityDelta> deltas;

  [[nodiscard]] const ParityTolerance& tolerance(const std::string& preset) const;
};

/// Reads the vectors, and compares their signals' checksums with those of melflow's signals. Throws
/// RunError that says what is wrong and where.
ParityVectors read_parity_vectors(const std::string& path);

}  // namespace melflow
