// Generates sound files.
#pragma once

#include <cmath>
#include <filesystem>

#include "tests/support/audio_files.h"

namespace melflow::test {

/// Writes a 16-bit mono WAV file of test_signal(), and the folders above it.
inline void write_clip(const std::filesystem::path& path, int sample_rate, double seconds,
                       unsigned seed = 1) {
  std::filesystem::create_directories(path.parent_path());
  write_wav(path, std::lround(seconds * sample_rate), sample_rate, seed);
}

}  // namespace melflow::test
