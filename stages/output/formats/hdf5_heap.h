// The collections of a file's global heap, in which HDF5 stores texts. HDF5 1.10 trusts the sizes
// in them, and the object numbers in datasets: if these are damaged, it reads and writes beyond its
// own buffers. So the library gets sound collections only, and texts are looked up here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace melflow {

/// Returns the size [bytes] that a collection states; nothing where `begin`, its first 16 bytes or
/// more, does not begin a collection.
std::optional<std::uint64_t> heap_bytes(std::span<const std::byte> begin);

/// Whether the objects of a whole collection follow each other without gaps to its end.
bool is_sound_heap(std::span<const std::byte> collection);

/// The texts of an open file.
class TextHeap {
 public:
  /// How a dataset or an attribute refers to a text: its length, its collection, its number there.
  static constexpr std::size_t kReferenceBytes = 16;

  /// `what`: the name of the referring object, for messages.
  TextHeap(int fd, std::uint64_t file_bytes, std::string what)
      : fd_(fd), file_bytes_(file_bytes), what_(std::move(what)) {}
  /// Throws RunError where there is no such text.
  [[nodiscard]] std::string text(std::span<const std::byte, kReferenceBytes> reference);

 private:
  struct Collection {
    std::vector<std::byte> bytes;
    std::map<std::uint32_t, std::span<const std::byte>> objects;
  };
  void load(std::uint64_t at);

  int fd_;
  std::uint64_t file_bytes_;
  std::string what_;
  std::uint64_t at_ = 0;  // position of the collection that was read last; 0: none
  Collection last_;
};

}  // namespace melflow
