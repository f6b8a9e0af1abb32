// The libraries that determine the samples of a recording.
#pragma once

#include <string>

namespace melflow {

/// Returns the names and versions of the libraries in use.
std::string audio_libraries();

}  // namespace melflow
