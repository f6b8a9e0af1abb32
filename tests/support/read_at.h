// Bytes in memory as the readers of sound files see a file.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "stages/audio/decoders/sound_header.h"

namespace melflow::test {

/// The bytes have to outlive it.
inline ReadAt reader(std::string_view bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= bytes.size()) return 0;
    const std::size_t n = std::min<std::size_t>(out.size(), bytes.size() - at);
    std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
}

}  // namespace melflow::test
