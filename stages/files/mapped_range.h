// A part of a file, mapped into memory and shared with it; and whether the page cache holds a part.
#pragma once

#include <sys/mman.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace melflow {

class MappedRange {
 public:
  MappedRange() = default;
  /// Maps `bytes` bytes of `fd` from `offset` on, a multiple of the page size. When that fails,
  /// data() is null, and errno says why.
  MappedRange(int fd, std::uint64_t offset, std::size_t bytes, int protection = PROT_READ) {
    void* p = mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (p == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(p);
    size_ = bytes;
  }
  MappedRange(MappedRange&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedRange& operator=(MappedRange&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedRange() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

enum class PageCache { holds, lacks, does_not_say };

/// Whether the page cache holds the byte `at`; some file systems do not say. The system begins to
/// load a byte that it lacks.
inline PageCache is_in_page_cache(int fd, std::uint64_t at) {
  char byte = 0;
  iovec where{&byte, 1};
  const ssize_t n = preadv2(fd, &where, 1, static_cast<off_t>(at), RWF_NOWAIT);
  if (n >= 0) return PageCache::holds;
  return errno == EAGAIN ? PageCache::lacks : PageCache::does_not_say;
}

}  // namespace melflow
