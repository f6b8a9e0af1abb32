// A sound file opened by libsndfile on bytes in memory or on an open file read through a window.
#pragma once

#include <sndfile.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace melflow {

class SoundFile {
 public:
  /// `data` stays valid as long as this lives. `claimed_size` is what libsndfile is told; it may be
  /// more than there is.
  SoundFile(const std::byte* data, std::uint64_t size, std::uint64_t claimed_size);
  /// Reads `fd` (kept open by the caller) in pieces of `window` bytes.
  SoundFile(int fd, std::uint64_t size, std::size_t window, std::uint64_t claimed_size);
  /// The sound file that `head` and the bytes [begin, end) of `fd` are together.
  SoundFile(int fd, std::span<const std::byte> head, std::uint64_t begin, std::uint64_t end,
            std::size_t window);
  SoundFile(SoundFile&&) noexcept;
  ~SoundFile();

  /// False when it is no sound file. libsndfile keeps the reason in one place for all threads, so
  /// it is not to be had; io_error() says whether reading failed.
  [[nodiscard]] bool ok() const { return handle_ != nullptr; }
  [[nodiscard]] const SF_INFO& info() const { return info_; }
  [[nodiscard]] SNDFILE* handle() const { return handle_; }
  /// What went wrong last with an open file, "" if nothing did. Requires ok().
  [[nodiscard]] std::string error() const;
  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int io_error() const;

 private:
  struct Input;
  void open();
  std::unique_ptr<Input> input_;
  SF_INFO info_{};
  SNDFILE* handle_ = nullptr;
};

}  // namespace melflow
