// The bytes that a decoder reads: in memory, or an open file through a window. Decoders read a few
// bytes here and there while they open a file, then in larger pieces; the window turns both into
// few system calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

class SoundInput {
 public:
  /// `data` stays valid as long as this lives.
  explicit SoundInput(std::span<const std::byte> data) : data_(data.data()), size_(data.size()) {}
  /// Reads `fd` (kept open by the caller) in pieces of `window` bytes.
  SoundInput(int fd, std::uint64_t size, std::size_t window)
      : fd_(fd), window_(window), size_(size) {}
  /// `head`, and the bytes [begin, end) of `fd` behind it.
  SoundInput(int fd, std::span<const std::byte> head, std::uint64_t begin, std::uint64_t end,
             std::size_t window)
      : head_(head.begin(), head.end()),
        fd_(fd),
        begin_(begin),
        window_(window),
        size_(head.size() + (end - begin)) {}

  /// As many bytes as there are, from `at` on; that is where the next ones come from.
  std::size_t read(std::span<std::byte> out);
  void seek(std::uint64_t at) { at_ = at; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// For those who look at headers; does not move.
  [[nodiscard]] ReadAt reader();

  /// Decoders see `value` instead of what stands in the byte `at`. For a few bytes of a header.
  void replace(std::uint64_t at, std::byte value) { replaced_.push_back({at, value}); }

  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Replaced {
    std::uint64_t at;
    std::byte value;
  };
  bool load();

  const std::byte* data_ = nullptr;  // the whole file, or
  std::vector<std::byte> head_;      // what stands before the bytes of the file
  int fd_ = -1;
  std::uint64_t begin_ = 0;  // from this one on
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  std::size_t window_size_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
  std::vector<Replaced> replaced_;
  int error_ = 0;
};

}  // namespace melflow
