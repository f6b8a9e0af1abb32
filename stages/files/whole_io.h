// Opens files that the user names, such as outputs of earlier runs; reads, writes and allocates a
// whole piece of a file, despite interruptions and short calls.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "stages/files/unique_fd.h"

namespace melflow {

/// Reads `bytes` bytes; returns 0 or the error, EIO where the file ends before that.
inline int read_whole(int fd, void* data, std::size_t bytes, std::uint64_t at) {
  auto* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Writes `bytes` bytes; returns 0 or the error.
inline int write_whole(int fd, const void* data, std::size_t bytes, std::uint64_t at) {
  const auto* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Reserves space for a piece of a file; returns 0 or the error. tmpfs fails and frees the space
/// when a signal arrives, so it is requested in small pieces.
inline int allocate_whole(int fd, std::uint64_t at, std::uint64_t bytes) {
  constexpr std::uint64_t kAtOnce = 256 << 10;
  while (bytes > 0) {
    const std::uint64_t n = std::min(bytes, kAtOnce);
    const int error = posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(n));
    if (error == EINTR) continue;
    if (error != 0) return error;
    at += n;
    bytes -= n;
  }
  return 0;
}

/// Opens a file for reading without ever waiting; `bytes` gets its size. Throws RunError when it
/// cannot be opened, or is a folder, pipe or device.
UniqueFd open_regular(const std::string& path, std::uint64_t& bytes);
/// Reads `bytes` bytes from `at` on, fewer at the end of the file. Throws RunError.
std::string read_at(int fd, std::uint64_t at, std::size_t bytes, const std::string& path);

}  // namespace melflow
