#include "stages/output/formats/hdf5_heap.h"

#include <cstring>

namespace melflow {
namespace {

// HDF5 File Format Specification 3.0, III.E "Disk Format: Level 1E - Global Heap".
constexpr char kHead[8] = {'G', 'C', 'O', 'L', 1, 0, 0, 0};  // signature, version, reserved
constexpr std::size_t kHeader = 16;                          // of a collection, and of an object

template <class T>
T number(std::span<const std::byte> bytes, std::size_t at) {
  T out = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    out = static_cast<T>(out << 8 | std::to_integer<T>(bytes[at + i]));
  return out;
}

}  // namespace

std::optional<std::uint64_t> heap_bytes(std::span<const std::byte> begin) {
  if (begin.size() < kHeader || std::memcmp(begin.data(), kHead, sizeof kHead) != 0)
    return std::nullopt;
  return number<std::uint64_t>(begin, 8);
}

// An object: number (2 bytes), references (2), reserved (4), size (8), and its bytes, rounded up to
// eight. Number 0 is what is free; its size counts from its own header.
bool is_sound_heap(std::span<const std::byte> collection) {
  if (collection.size() < kHeader) return false;
  for (std::size_t at = kHeader; collection.size() - at >= kHeader;) {
    const std::size_t room = collection.size() - at;
    const bool is_free = number<std::uint16_t>(collection, at) == 0;
    const auto reserved = number<std::uint32_t>(collection, at + 4);
    const auto size = number<std::uint64_t>(collection, at + 8);
    if (reserved != 0 || size > room) return false;
    const std::uint64_t taken = is_free ? size : kHeader + (size + 7) / 8 * 8;
    if (taken < kHeader || taken > room) return false;
    at += taken;
  }
  return true;
}

}  // namespace melflow
