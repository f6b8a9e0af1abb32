// Features of recordings by the Python library itself, where it is installed.
//
// In:  a library's name, options, recordings at the options' sample rate.
// Out: the library's rows of each, by apps/parity_reference.py in a process of its own; samples and
//      rows pass through raw float32 files in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "apps/parity_audio.h"
#include "apps/parity_vectors.h"

namespace melflow {

/// A library that can be asked, and the presets that it defines, the usual one first.
struct ParityLibrary {
  std::string name;
  std::vector<std::string> presets;
};
const std::vector<ParityLibrary>& parity_libraries();

struct ReferenceRows {
  std::string refused;  ///< why the library gave none, "" when it did
  std::int64_t frames = 0;
  int columns = 0;
  std::vector<float> values;  ///< [frames, columns]
};

struct ReferenceAnswer {
  ParitySource source;
  std::vector<ReferenceRows> rows;  ///< one for each recording
};

/// `python`: a path, or a name that is looked for on PATH. Throws RunError when it cannot be
/// started or lacks the library, saying what to install.
ReferenceAnswer ask_reference(const std::string& python, const std::string& library,
                              const MelOptions& options,
                              const std::vector<ParityRecording>& recordings);

}  // namespace melflow
