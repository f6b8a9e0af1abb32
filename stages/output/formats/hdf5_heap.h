// Checks the collections of a file's global heap, in which HDF5 stores texts, before the library
// gets them: HDF5 1.10 trusts the sizes in them, and with a damaged one it reads and writes beyond
// its own buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace melflow {

/// The size [bytes] that a collection states of itself. `begin`: its first 16 bytes or more.
/// Nothing where these do not begin a collection.
std::optional<std::uint64_t> heap_bytes(std::span<const std::byte> begin);

/// Whether the objects of a whole collection follow each other without gaps to its end.
bool is_sound_heap(std::span<const std::byte> collection);

}  // namespace melflow
