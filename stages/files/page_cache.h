// Asks whether the page cache holds a part of an open file.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstdint>

namespace melflow {

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
