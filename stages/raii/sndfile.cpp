#include "stages/raii/sndfile.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace melflow {

// libsndfile reads a few bytes here and there while it opens a file, then in larger pieces; the
// window turns both into few system calls.
struct SoundFile::Input {
  const std::byte* data = nullptr;  // the whole file, or
  int fd = -1;                      // the file, and a window on it
  std::vector<std::byte> head;      // stands before the bytes of the file from
  std::uint64_t begin = 0;          // this one on
  std::vector<std::byte> window;
  std::uint64_t window_at = 0;
  std::size_t window_size = 0;
  std::uint64_t size = 0;
  std::uint64_t claimed_size = 0;
  std::uint64_t at = 0;
  int error = 0;

  // Makes the window cover `at`; false at the end or on an error.
  bool load() {
    if (at >= window_at && at < window_at + window_size) return true;
    window_at = at;
    window_size = 0;
    while (window_size < window.size() && at + window_size < size) {
      const auto want = std::min<std::uint64_t>(window.size(), size - at) - window_size;
      const ssize_t n = ::pread(fd, window.data() + window_size, want,
                                static_cast<off_t>(begin + window_at - head.size() + window_size));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) error = errno;
      if (n <= 0) break;
      window_size += static_cast<std::size_t>(n);
    }
    return window_size > 0;
  }

  sf_count_t read(std::byte* out, sf_count_t count) {
    constexpr std::uint64_t kTags = 4096;
    if (at > size && at < claimed_size && at + kTags >= claimed_size) {  // looks for tags
      const auto n = std::min<std::uint64_t>(static_cast<std::uint64_t>(count), claimed_size - at);
      std::memset(out, 0, n);
      at += n;
      return static_cast<sf_count_t>(n);
    }
    sf_count_t done = 0;
    while (done < count && at < size) {
      const std::byte* from = nullptr;
      std::uint64_t have = 0;
      if (at < head.size()) {
        from = head.data() + at;
        have = head.size() - at;
      } else if (data != nullptr) {
        from = data + at;
        have = size - at;
      } else {
        if (!load()) break;
        from = window.data() + (at - window_at);
        have = window_at + window_size - at;
      }
      const auto n = std::min<std::uint64_t>(have, static_cast<std::uint64_t>(count - done));
      std::memcpy(out + done, from, n);
      at += n;
      done += static_cast<sf_count_t>(n);
    }
    return done;
  }
};

SoundFile::SoundFile(const std::byte* data, std::uint64_t size, std::uint64_t claimed_size)
    : input_(new Input) {
  input_->data = data;
  input_->size = size;
  input_->claimed_size = claimed_size;
  open();
}

SoundFile::SoundFile(int fd, std::uint64_t size, std::size_t window, std::uint64_t claimed_size)
    : input_(new Input) {
  input_->fd = fd;
  input_->size = size;
  input_->claimed_size = claimed_size;
  input_->window.resize(window);
  open();
}

SoundFile::SoundFile(int fd, std::span<const std::byte> head, std::uint64_t begin,
                     std::uint64_t end, std::size_t window)
    : input_(new Input) {
  input_->fd = fd;
  input_->head.assign(head.begin(), head.end());
  input_->begin = begin;
  input_->size = input_->claimed_size = head.size() + (end - begin);
  input_->window.resize(window);
  open();
}

SoundFile::SoundFile(SoundFile&& other) noexcept
    : input_(std::move(other.input_)), info_(other.info_), handle_(other.handle_) {
  other.handle_ = nullptr;
}

SoundFile::~SoundFile() {
  if (handle_ != nullptr) sf_close(handle_);
}

void SoundFile::open() {
  static SF_VIRTUAL_IO io = {
      [](void* user) { return static_cast<sf_count_t>(static_cast<Input*>(user)->claimed_size); },
      [](sf_count_t offset, int whence, void* user) -> sf_count_t {
        auto& in = *static_cast<Input*>(user);
        const auto base = whence == SEEK_CUR   ? static_cast<sf_count_t>(in.at)
                          : whence == SEEK_END ? static_cast<sf_count_t>(in.claimed_size)
                                               : 0;
        if (base + offset < 0) return -1;
        in.at = static_cast<std::uint64_t>(base + offset);
        return static_cast<sf_count_t>(in.at);
      },
      [](void* out, sf_count_t count, void* user) {
        return static_cast<Input*>(user)->read(static_cast<std::byte*>(out), count);
      },
      nullptr,
      [](void* user) { return static_cast<sf_count_t>(static_cast<Input*>(user)->at); },
  };
  handle_ = sf_open_virtual(&io, SFM_READ, &info_, input_.get());
}

std::string SoundFile::error() const {
  return sf_error(handle_) == SF_ERR_NO_ERROR ? "" : sf_strerror(handle_);
}

int SoundFile::io_error() const { return input_->error; }

}  // namespace melflow
