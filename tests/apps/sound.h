// Sound files made on the spot.
#pragma once

#include <filesystem>

namespace melflow::test {

/// A 16-bit mono WAV file: a tone that rises from 200 Hz, with a little noise that `seed` chooses.
/// Makes the folders above it.
void write_clip(const std::filesystem::path& path, int sample_rate, double seconds,
                unsigned seed = 1);

}  // namespace melflow::test
