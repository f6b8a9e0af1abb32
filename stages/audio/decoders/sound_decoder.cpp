#include "stages/audio/decoders/sound_decoder.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace melflow {
// Makes the window cover `at_`; false at the end or on an error.
bool SoundInput::load() {
  if (at_ >= window_at_ && at_ < window_at_ + window_size_) return true;
  window_at_ = at_;
  window_size_ = 0;
  while (window_size_ < window_.size() && at_ + window_size_ < size_) {
    const auto want = std::min<std::uint64_t>(window_.size(), size_ - at_) - window_size_;
    const ssize_t n = ::pread(fd_, window_.data() + window_size_, want,
                              static_cast<off_t>(begin_ + window_at_ + window_size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error_ = errno;
    if (n <= 0) break;
    window_size_ += static_cast<std::size_t>(n);
  }
  return window_size_ > 0;
}

std::size_t SoundInput::read(std::span<std::byte> out) {
  const std::uint64_t from_here = at_;
  std::size_t done = 0;
  while (done < out.size() && at_ < size_) {
    const std::byte* from = nullptr;
    std::uint64_t have = 0;
    if (data_ != nullptr) {
      from = data_ + at_;
      have = size_ - at_;
    } else {
      if (!load()) break;
      from = window_.data() + (at_ - window_at_);
      have = window_at_ + window_size_ - at_;
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(have, out.size() - done));
    std::memcpy(out.data() + done, from, n);
    at_ += n;
    done += n;
  }
  for (const Replaced& r : replaced_)
    if (r.at >= from_here && r.at < from_here + done) out[r.at - from_here] = r.value;
  return done;
}

ReadAt SoundInput::reader() {
  return [this](std::uint64_t at, std::span<std::byte> out) {
    const std::uint64_t back = at_;
    at_ = at;
    const std::size_t n = read(out);
    at_ = back;
    return n;
  };
}

}  // namespace melflow
