// Gives a decoder the bytes of a file, from memory or from an open file through a window of memory.
// Decoders read a few bytes here and there while they open a file, then larger pieces; the window
// makes few system calls of both.
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
  /// Reads `data`, which must stay valid as long as this object lives.
  explicit SoundInput(std::span<const std::byte> data) : data_(data.data()), size_(data.size()) {}
  /// Reads `fd` (kept open by the caller) in pieces of `window` bytes.
  SoundInput(int fd, std::uint64_t size, std::size_t window)
      : fd_(fd), window_(window), size_(size) {}

  /// Reads as many bytes as there are, up to out.size(), from at() on, and moves at() behind them.
  std::size_t read(std::span<std::byte> out);
  void seek(std::uint64_t at) { at_ = at; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Reads from any place, for headers; at() stays.
  [[nodiscard]] ReadAt reader();

  /// Shows decoders `value` in place of the byte at `at`. For a few bytes of a header.
  void replace(std::uint64_t at, std::byte value) { replaced_.push_back({at, value}); }
  /// Shows all bytes as they are, for another decoder.
  void restore() { replaced_.clear(); }

  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Replaced {
    std::uint64_t at;
    std::byte value;
  };
  bool load();

  const std::byte* data_ = nullptr;  // the whole file, or
  int fd_ = -1;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  std::size_t window_size_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
  std::vector<Replaced> replaced_;
  int error_ = 0;
};

}  // namespace melflow
