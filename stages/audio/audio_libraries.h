// The libraries that decide the samples of a recording.
#pragma once

#include <string>

namespace melflow {

/// Their names and versions, of those that the program runs with.
std::string audio_libraries();

}  // namespace melflow
