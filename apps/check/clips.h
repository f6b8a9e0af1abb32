// Short stretches of recordings, to be seen and heard in a page.
#pragma once

#include <string>

namespace melflow {

struct Clip {
  int sample_rate = 0, channels = 0;
  double begin = 0, seconds = 0;  ///< in the recording [s]
  std::string url;                ///< FLAC, as a URL that contains it; "" for none
  std::string why;                ///< why there is none
};

/// Reads `seconds` of a recording, all channels, from `begin` on. `path`: as a manifest has it. At
/// most kMostChannels channels, and samples of 16 bits.
Clip read_clip(const std::string& path, double begin, double seconds);
inline constexpr int kMostChannels = 8;

}  // namespace melflow
