#include "stages/audio/audio_libraries.h"

#include <FLAC/format.h>
#include <mpg123.h>
#include <sndfile.h>
#include <soxr.h>

#include <fmt/format.h>

namespace melflow {

std::string audio_libraries() {
  return fmt::format("{}, FLAC {}, mpg123 {}, {}", sf_version_string(), FLAC__VERSION_STRING,
                     MPG123_API_VERSION, soxr_version());
}

}  // namespace melflow
