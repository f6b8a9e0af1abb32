// Computes features of recordings with the Python library itself, if it is installed.
//
// In:  a library's name, options, recordings at the options' sample rate.
// Out: the library's rows of each recording, by parity_reference.py beside this file in its own
//      process; samples and rows are exchanged as raw float32 files in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "apps/parity/audio.h"
#include "apps/parity/vectors.h"

namespace melflow {

/// A library that can be run, and the presets that it defines, the default one first.
struct ParityLibrary {
  std::string name;
  std::vector<std::string> presets;
  bool is_double;  ///< whether its transform is in double precision
};
const std::vector<ParityLibrary>& parity_libraries();
/// Whether the library that defines the preset computes its transform in double precision.
bool transforms_in_double(const std::string& preset);

struct ReferenceRows {
  std::string refused;  ///< why the library returned no rows; "" when it did
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;  ///< [frames, columns]
  /// [frames, columns]: the difference of each value from the library's own code in double
  /// precision; empty where it is not known.
  std::vector<float> own_errors;
};

struct ReferenceAnswer {
  ParitySource source;
  std::vector<ReferenceRows> rows;  ///< one for each recording
};

/// Runs the library. `python`: a path, or a name to look up on PATH; `changed`: the options that
/// the user set. Throws RunError when Python cannot be started or lacks the library (and says what
/// to install), and when the library has no counterpart of a changed option.
ReferenceAnswer ask_reference(const std::string& python, const std::string& library,
                              const MelOptions& options, const std::vector<std::string>& changed,
                              const std::vector<ParityRecording>& recordings);

}  // namespace melflow
