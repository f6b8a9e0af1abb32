// Evicts files from the page cache for tests. Uses mincore to query it: a read that must not block
// would tell as much, but make the system start loading the file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <stdexcept>
#include <string>

#include "stages/files/unique_fd.h"

namespace melflow::test {

/// Whether the first page of a file is cached.
inline bool is_cached(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* at = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  unsigned char state = 0;
  const int failed = ::mincore(at, 1, &state);
  ::munmap(at, 1);
  if (failed != 0) throw std::runtime_error("mincore: " + path);
  return (state & 1) != 0;
}

/// Drops files from the page cache. Returns false if this file system keeps them.
[[nodiscard]] inline bool evict(std::span<const std::string> paths) {
  // A page that was just written may stay for a moment on a list of some core.
  for (int round = 0; round < 20; ++round) {
    bool is_any_cached = false;
    for (const std::string& path : paths) {
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (fdatasync(fd.get()) != 0 || posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
        return false;
      is_any_cached |= is_cached(path);
    }
    if (!is_any_cached) return true;
  }
  return false;
}

}  // namespace melflow::test
