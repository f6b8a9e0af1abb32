// Computes features of recordings with the Python library itself, where it is installed.
//
// In:  a library's name, options, recordings at the options' sample rate.
// Out: the library's rows of each, by parity_reference.py beside this file in a process of its own;
//      samples and rows pass through raw float32 files in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "apps/parity/audio.h"
#include "apps/parity/vectors.h"

namespace melflow {

/// A library that can be run, and the presets that it defines, the usual one first.
struct ParityLibrary {
  std::string name;
  std::vector<std::string> presets;
  bool is_double;  ///< whether its transform is in double precision
};
const std::vector<ParityLibrary>& parity_libraries();
/// Whether the transform of the library that defines the preset is in double precision.
bool transforms_in_double(const std::string& preset);

struct ReferenceRows {
  std::string refused;  ///< the reason why the library gave no rows, "" when it did
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;  ///< [frames, columns]
  /// [frames, columns], how far each is from the library's own code in double precision; empty:
  /// not known.
  std::vector<float> own_errors;
};

struct ReferenceAnswer {
  ParitySource source;
  std::vector<ReferenceRows> rows;  ///< one for each recording
};

/// Runs the library. `python`: a path, or a name to be found on PATH; `changed`: options that the
/// user set. Throws RunError when Python cannot be started or lacks the library, saying what to
/// install, and when the library has no counterpart of a changed option.
ReferenceAnswer ask_reference(const std::string& python, const std::string& library,
                              const MelOptions& options, const std::vector<std::string>& changed,
                              const std::vector<ParityRecording>& recordings);

}  // namespace melflow
