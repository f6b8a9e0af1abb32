// Copies that leave the processor's caches alone: for what is larger than these anyway, a third of
// the traffic with memory less, since no line is read that is about to be written over.
#pragma once

#include <cstddef>

namespace melflow {

/// From this size on [bytes] what is written is not found in a core's own cache when it is read.
inline constexpr std::size_t kBeyondCaches = std::size_t{4} << 20;

/// As std::memcpy.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace melflow
