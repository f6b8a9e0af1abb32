// Copies that bypass the processor's caches, for data that is larger than these anyway. This saves
// a third of the memory traffic, since cache lines that will be overwritten are not read first.
#pragma once

#include <cstddef>

namespace melflow {

/// Data of this size [bytes] or more no longer fits a core's own cache when it is read back.
inline constexpr std::size_t kBeyondCaches = std::size_t{4} << 20;

/// Same as std::memcpy, but bypasses the caches.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace melflow
