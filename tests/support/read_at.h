// Presents bytes in memory as a file to the readers of sound files.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "stages/audio/decoders/sound_header.h"

namespace melflow::test {

/// The bytes must outlive the result.
inline ReadAt reader(std::string_view bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= bytes.size()) return 0;
    const std::size_t n = std::min<std::size_t>(out.size(), bytes.size() - at);
    std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
}

}  // namespace melflow::test
