#include "stages/output/formats/hdf5_heap.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/whole_io.h"

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

// Passes the number and bytes of each object to `take`; false where the objects do not fill the
// collection. An object has a number (2 bytes), references (2), 4 reserved bytes, its size (8), and
// its bytes, rounded up to eight. Number 0 is free space, whose size includes its own header.
template <class Take>
bool for_each_object(std::span<const std::byte> collection, const Take& take) {
  if (collection.size() < kHeader) return false;
  for (std::size_t at = kHeader; collection.size() - at >= kHeader;) {
    const std::size_t room = collection.size() - at;
    const auto object = number<std::uint16_t>(collection, at);
    const auto reserved = number<std::uint32_t>(collection, at + 4);
    const auto size = number<std::uint64_t>(collection, at + 8);
    if (reserved != 0 || size > room) return false;
    const std::uint64_t taken = object == 0 ? size : kHeader + (size + 7) / 8 * 8;
    if (taken < kHeader || taken > room) return false;
    if (object != 0) take(object, collection.subspan(at + kHeader, size));
    at += taken;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> heap_bytes(std::span<const std::byte> begin) {
  if (begin.size() < kHeader || std::memcmp(begin.data(), kHead, sizeof kHead) != 0)
    return std::nullopt;
  return number<std::uint64_t>(begin, 8);
}

bool is_sound_heap(std::span<const std::byte> collection) {
  return for_each_object(collection, [](std::uint32_t, std::span<const std::byte>) {});
}

std::string TextHeap::text(std::span<const std::byte, kReferenceBytes> reference) {
  const auto length = number<std::uint32_t>(reference, 0);
  const auto at = number<std::uint64_t>(reference, 4);
  const auto object = number<std::uint32_t>(reference, 12);
  if (length == 0 || at == 0) return {};
  if (at != at_) load(at);
  const auto it = last_.objects.find(object);
  if (it == last_.objects.end() || it->second.size() < length)
    throw RunError(fmt::format("{}: there is no text of {} bytes with the number {} at {}", what_,
                               length, object, at));
  std::string out(reinterpret_cast<const char*>(it->second.data()), length);
  out.resize(std::min(out.size(), out.find('\0')));
  return out;
}

void TextHeap::load(std::uint64_t at) {
  at_ = 0;
  last_.objects.clear();
  std::vector<std::byte>& bytes = last_.bytes;
  bytes.resize(kHeader);
  const auto read = [&] {
    return at <= file_bytes_ && bytes.size() <= file_bytes_ - at &&
           read_whole(fd_, bytes.data(), bytes.size(), at) == 0;
  };
  const auto size = read() ? heap_bytes(bytes) : std::nullopt;
  if (size && *size <= file_bytes_) bytes.resize(*size);
  if (!size || bytes.size() != *size || !read() ||
      !for_each_object(bytes, [this](std::uint32_t object, std::span<const std::byte> its) {
        last_.objects[object] = its;
      }))
    throw RunError(fmt::format("{}: there are no texts at {}", what_, at));
  at_ = at;
}

}  // namespace melflow
