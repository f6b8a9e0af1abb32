// Preloaded into a program: records its operations on files for power_walk.py, which computes from
// these what a disk may contain after a power failure.
//
// In:  MELFLOW_DISK_LOG=FILE   gets a record for each call: a Head, then its two texts
//      MELFLOW_BOOT=FILE       is read instead of the kernel's identifier of the current boot
//
// A call and its record are one step, so the records are in the order of the calls.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "tests/apps/system_calls.h"

using namespace melflow::test;

namespace {

struct Head {
  char what[8];  // create, size, write, sync (of a file or folder), rename, unlink
  uint64_t file = 0;
  uint64_t at = 0;                 // of write: the offset; of size: the size
  uint32_t first = 0, second = 0;  // lengths of the texts
};

std::mutex one_by_one;

void put(const char* what, uint64_t file, uint64_t at, const std::string& first = "",
         const std::string& second = "") {
  const char* path = getenv("MELFLOW_DISK_LOG");
  if (path == nullptr) return;
  Head head{};
  strncpy(head.what, what, sizeof head.what - 1);
  head.file = file;
  head.at = at;
  head.first = static_cast<uint32_t>(first.size());
  head.second = static_cast<uint32_t>(second.size());
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += first;
  bytes += second;
  const long fd =
      syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (syscall(SYS_write, fd, bytes.data(), bytes.size()) != static_cast<long>(bytes.size()))
    abort();
  syscall(SYS_close, fd);
}

// Returns the number of a regular file; 0 for anything else.
uint64_t number_of(int fd) {
  struct stat st {};
  return syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_ino : 0;
}

std::string path_of(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  return n > 0 ? std::string(path, n) : "";
}

int open_file(int at, const char* path, int flags, mode_t mode) {
  static const auto real = next<int(int, const char*, int, mode_t)>("openat");
  if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 && getenv("MELFLOW_BOOT") != nullptr)
    path = getenv("MELFLOW_BOOT");
  if ((flags & (O_CREAT | O_TRUNC)) == 0) return real(at, path, flags, mode);
  const std::lock_guard lock(one_by_one);
  const bool was_there = syscall(SYS_faccessat, at, path, F_OK) == 0;
  const int fd = real(at, path, flags, mode);
  const int error = errno;
  if (const uint64_t file = fd < 0 ? 0 : number_of(fd); file != 0) {
    if (!was_there) put("create", file, 0, path_of(fd));
    if (was_there && (flags & O_TRUNC) != 0) put("size", file, 0);
  }
  errno = error;
  return fd;
}

void written(int fd, uint64_t at, const void* from, ssize_t bytes) {
  const int error = errno;
  if (const uint64_t file = bytes > 0 ? number_of(fd) : 0; file != 0)
    put("write", file, at, {static_cast<const char*>(from), static_cast<size_t>(bytes)});
  errno = error;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

WRAP_OPENS(open_file(AT_FDCWD, path, flags, mode))
WRAP_OPENATS(open_file(at, path, flags, mode))

ssize_t write(int fd, const void* from, size_t bytes) {
  static const auto real = next<ssize_t(int, const void*, size_t)>("write");
  const std::lock_guard lock(one_by_one);
  const ssize_t n = real(fd, from, bytes);
  const int error = errno;
  const off_t end = lseek(fd, 0, SEEK_CUR);
  errno = error;
  written(fd, end - n, from, n);
  return n;
}
#define PWRITE(name)                                                                   \
  ssize_t name(int fd, const void* from, size_t bytes, off_t at) {                     \
    static const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite"); \
    const std::lock_guard lock(one_by_one);                                            \
    const ssize_t n = real(fd, from, bytes, at);                                       \
    written(fd, at, from, n);                                                          \
    return n;                                                                          \
  }
PWRITE(pwrite)
PWRITE(pwrite64)
#define PWRITEV(name)                                                                 \
  ssize_t name(int fd, const iovec* pieces, int count, off_t at) {                    \
    static const auto real = next<ssize_t(int, const iovec*, int, off_t)>("pwritev"); \
    const std::lock_guard lock(one_by_one);                                           \
    const ssize_t n = real(fd, pieces, count, at);                                    \
    std::string all;                                                                  \
    for (int i = 0; i < count && n > 0; ++i)                                          \
      all.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);    \
    written(fd, at, all.data(), n);                                                   \
    return n;                                                                         \
  }
PWRITEV(pwritev)
PWRITEV(pwritev64)

// Reads the copied bytes back for the record.
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t bytes,
                        unsigned flags) {
  static const auto real =
      next<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  const std::lock_guard lock(one_by_one);
  const off64_t began = from_at != nullptr ? *from_at : lseek(from, 0, SEEK_CUR);
  const off64_t at = to_at != nullptr ? *to_at : lseek(to, 0, SEEK_CUR);
  const ssize_t n = real(from, from_at, to, to_at, bytes, flags);
  if (n <= 0) return n;
  std::string copied(n, '\0');
  if (pread(from, copied.data(), n, began) != n) abort();
  written(to, at, copied.data(), n);
  return n;
}

#define FTRUNCATE(name)                                                        \
  int name(int fd, off_t bytes) noexcept {                                     \
    static const auto real = next<int(int, off_t)>("ftruncate");               \
    const std::lock_guard lock(one_by_one);                                    \
    const int result = real(fd, bytes);                                        \
    if (result == 0) put("size", number_of(fd), static_cast<uint64_t>(bytes)); \
    return result;                                                             \
  }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)
#define FSYNC(name)                                              \
  int name(int fd) {                                             \
    static const auto real = next<int(int)>(#name);              \
    const std::lock_guard lock(one_by_one);                      \
    const int result = real(fd);                                 \
    if (result == 0) put("sync", number_of(fd), 0, path_of(fd)); \
    return result;                                               \
  }
FSYNC(fsync)
FSYNC(fdatasync)

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int(const char*, const char*)>("rename");
  const std::lock_guard lock(one_by_one);
  const int result = real(from, to);
  if (result == 0) put("rename", 0, 0, from, to);
  return result;
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static const auto real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const std::lock_guard lock(one_by_one);
  const int result = real(at, from, to_at, to, flags);
  if (result == 0) put("rename", 0, 0, from, to);
  return result;
}
int unlink(const char* path) noexcept {
  static const auto real = next<int(const char*)>("unlink");
  const std::lock_guard lock(one_by_one);
  const int result = real(path);
  if (result == 0) put("unlink", 0, 0, path);
  return result;
}

int remove(const char* path) noexcept { return unlink(path) == 0 ? 0 : rmdir(path); }

}  // extern "C"
