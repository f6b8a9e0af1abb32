// Collections of a file's global heap, where HDF5 keeps texts.
//
// HDF5 1.10 believes the sizes in them: with one that is damaged it reads and writes beyond its own
// buffers. So they are looked at before the library gets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace melflow {

/// How many bytes the collection has by its own account, whose first 16 or more bytes these are;
/// nothing where they are none of a collection.
std::optional<std::uint64_t> heap_bytes(std::span<const std::byte> begin);

/// Whether the objects of a whole collection lie one behind the other, to its end.
bool is_sound_heap(std::span<const std::byte> collection);

}  // namespace melflow
