// Preloaded into a program: one system call fails, the n-th of its kind, and no other.
//
// In:  MELFLOW_FAULT=KIND:N:HOW  HOW: a number: the error; "short": half of the bytes are read or
//                                written; "lost": pwrite writes nothing, but succeeds; "wrong":
//                                the first name of a .wav file in the data is changed; "kill": the
//                                program ends there; "hang": the call never returns
//      MELFLOW_FAULT_BYTES=N     "memory" counts requests for N bytes alone
//      MELFLOW_FAULT_LOG=FILE    gets a line "KIND COUNT" for every kind when the program ends, and
//                                "fault KIND N WHAT" when one was made to fail
//
// "malloc" is any request for at least 64 KiB of memory, "memory" any request from main() on; WHAT
// are then the callers, innermost first. This sees the calls of the program and its libraries, but
// neither those that libc makes itself (fopen, for example), nor the work of a request ring
// (io_uring) in the kernel.
#include <dirent.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "tests/apps/system_calls.h"

using namespace melflow::test;

namespace {

enum Kind {
  kOpen,
  kOpendir,
  kReaddir,
  kStat,
  kRead,
  kPread,
  kWrite,
  kPwrite,
  kFtruncate,
  kFsync,
  kClose,
  kRename,
  kUnlink,
  kFlock,
  kMmap,
  kFallocate,
  kThread,
  kMalloc,
  kMemory,
  kKinds
};
constexpr const char* kNames[kKinds] = {"open",      "opendir", "readdir", "stat",      "read",
                                        "pread",     "write",   "pwrite",  "ftruncate", "fsync",
                                        "close",     "rename",  "unlink",  "flock",     "mmap",
                                        "fallocate", "thread",  "malloc",  "memory"};

constexpr size_t kLargeMemory = 64 << 10;  // smallest allocation that is counted [bytes]

std::atomic<long> counts[kKinds];

void log_line(const char* text, int size) {
  const char* path = getenv("MELFLOW_FAULT_LOG");
  if (path == nullptr) return;
  const long fd =
      syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  syscall(SYS_write, fd, text, size);
  syscall(SYS_close, fd);
}

struct Fault {
  int kind = -1;
  long n = 0;
  int error = 0;  // 0: a partial read or write
  bool is_lost = false, is_wrong = false, kills = false, hangs = false;
  size_t bytes = 0;  // of requests that count as "memory"; 0: all

  Fault() {
    if (const char* size = getenv("MELFLOW_FAULT_BYTES")) bytes = strtoul(size, nullptr, 10);
    const char* text = getenv("MELFLOW_FAULT");
    char name[16], how[16];
    if (text == nullptr || sscanf(text, "%15[^:]:%ld:%15s", name, &n, how) != 3) return;
    for (int k = 0; k < kKinds; ++k)
      if (strcmp(name, kNames[k]) == 0) kind = k;
    error = atoi(how);
    is_lost = strcmp(how, "lost") == 0;
    is_wrong = strcmp(how, "wrong") == 0;
    kills = strcmp(how, "kill") == 0;
    hangs = strcmp(how, "hang") == 0;
  }
};

const Fault& fault() {
  static const Fault it;
  return it;
}

// Returns true for the one call that should fail; `what` is for the log.
bool is_it(Kind kind, const char* what) {
  const long n = ++counts[kind];
  if (kind != fault().kind || n != fault().n) return false;
  char line[512];
  log_line(line, std::min<int>(sizeof line - 1, snprintf(line, sizeof line, "fault %s %ld %s\n",
                                                         kNames[kind], n, what)));
  if (fault().kills) kill(getpid(), SIGKILL);
  while (fault().hangs) pause();
  return true;
}

bool fails(Kind kind, const char* what = "") {
  if (!is_it(kind, what) || fault().error == 0) return false;
  errno = fault().error;
  return true;
}

std::atomic<bool> is_in_main{false};

// Who asked for memory: a few callers, as FILE(FUNCTION+OFFSET) or FILE(+OFFSET).
void log_callers() {
  void* frames[24];
  const int count = backtrace(frames, 24);
  char line[4096];
  int at = snprintf(line, sizeof line, "fault memory %ld", fault().n);
  for (int i = 2; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0) continue;
    const char* file = strrchr(info.dli_fname, '/');
    const auto* base = static_cast<const char*>(info.dli_fbase);
    at += snprintf(line + at, sizeof line - at, " %s(%s+0x%tx)",
                   file == nullptr ? info.dli_fname : file + 1,
                   info.dli_sname == nullptr ? "" : info.dli_sname,
                   static_cast<const char*>(frames[i]) - base);
    if (at > static_cast<int>(sizeof line) - 512) break;
  }
  line[at++] = '\n';
  log_line(line, at);
}

bool fails_small(size_t bytes) {
  if (!is_in_main || (fault().bytes != 0 && bytes != fault().bytes)) return false;
  if (++counts[kMemory] != fault().n || fault().kind != kMemory) return false;
  log_callers();
  while (fault().hangs) pause();
  errno = ENOMEM;
  return true;
}

// For a call that moves bytes: returns true if it should fail, or reduces `bytes`.
bool fails(Kind kind, const char* what, size_t& bytes) {
  if (!is_it(kind, what)) return false;
  if (fault().error == 0) {
    bytes = (bytes + 1) / 2;
    return false;
  }
  errno = fault().error;
  return true;
}

struct AtExit {
  ~AtExit() {
    char line[64];
    for (int k = 0; k < kKinds; ++k)
      log_line(line, snprintf(line, sizeof line, "%s %ld\n", kNames[k], counts[k].load()));
  }
} const at_exit;

// Returns the data to write instead of `from`.
std::string spoiled(const void* from, size_t bytes) {
  std::string out(static_cast<const char*>(from), bytes);
  const size_t name = out.find(".wav");
  if (name != out.npos && name > 0) out[name - 1] ^= 1;
  return out;
}

}  // namespace

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wnonnull-compare"
extern "C" {

WRAP_OPENS(fails(kOpen, path) ? -1 : real(path, flags, mode))
WRAP_OPENATS(fails(kOpen, path) ? -1 : real(at, path, flags, mode))
#define FOPEN(name)                                                        \
  FILE* name(const char* path, const char* mode) {                         \
    static const auto real = next<FILE*(const char*, const char*)>(#name); \
    return fails(kOpen, path) ? nullptr : real(path, mode);                \
  }
FOPEN(fopen)
FOPEN(fopen64)

// Code that is compiled with size checks calls these.
#define OPEN_2(name)                                             \
  int name(const char* path, int flags) {                        \
    static const auto real = next<int(const char*, int)>(#name); \
    return fails(kOpen, path) ? -1 : real(path, flags);          \
  }
OPEN_2(__open_2)
OPEN_2(__open64_2)

DIR* opendir(const char* path) {
  static const auto real = next<DIR*(const char*)>("opendir");
  return fails(kOpendir, path) ? nullptr : real(path);
}
DIR* fdopendir(int fd) {
  static const auto real = next<DIR*(int)>("fdopendir");
  return fails(kOpendir, "fdopendir") ? nullptr : real(fd);
}
struct dirent* readdir(DIR* folder) {
  static const auto real = next<struct dirent*(DIR*)>("readdir");
  return fails(kReaddir) ? nullptr : real(folder);
}
struct dirent64* readdir64(DIR* folder) {
  static const auto real = next<struct dirent64*(DIR*)>("readdir64");
  return fails(kReaddir) ? nullptr : real(folder);
}

WRAP_STATS(fails(kStat, path) ? -1 : real(path, st))
// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot be in parentheses
#define FSTAT(name, type)                                  \
  int name(int fd, type* st) noexcept {                    \
    static const auto real = next<int(int, type*)>(#name); \
    return fails(kStat, #name) ? -1 : real(fd, st);        \
  }
FSTAT(fstat, struct stat)
FSTAT(fstat64, struct stat64)
#define FSTATAT(name, type)                                                  \
  int name(int at, const char* path, type* st, int flags) noexcept {         \
    static const auto real = next<int(int, const char*, type*, int)>(#name); \
    return fails(kStat, path) ? -1 : real(at, path, st, flags);              \
  }
FSTATAT(fstatat, struct stat)
FSTATAT(fstatat64, struct stat64)
// NOLINTEND(bugprone-macro-parentheses)
int statx(int at, const char* path, int flags, unsigned mask, struct statx* st) noexcept {
  static const auto real = next<int(int, const char*, int, unsigned, struct statx*)>("statx");
  return fails(kStat, path) ? -1 : real(at, path, flags, mask, st);
}

ssize_t read(int fd, void* to, size_t bytes) {
  static const auto real = next<ssize_t(int, void*, size_t)>("read");
  return fails(kRead, "", bytes) ? -1 : real(fd, to, bytes);
}
// NOLINTBEGIN(bugprone-reserved-identifier): glibc's names for calls that check a size
ssize_t __read_chk(int fd, void* to, size_t bytes, size_t) { return read(fd, to, bytes); }
#define PREAD(name)                                                             \
  ssize_t name(int fd, void* to, size_t bytes, off_t at) {                      \
    static const auto real = next<ssize_t(int, void*, size_t, off_t)>("pread"); \
    return fails(kPread, "", bytes) ? -1 : real(fd, to, bytes, at);             \
  }
PREAD(pread)
PREAD(pread64)
ssize_t __pread_chk(int fd, void* to, size_t bytes, off_t at, size_t) {
  return pread(fd, to, bytes, at);
}
ssize_t __pread64_chk(int fd, void* to, size_t bytes, off_t at, size_t) {
  return pread(fd, to, bytes, at);
}
// NOLINTEND(bugprone-reserved-identifier)
ssize_t write(int fd, const void* from, size_t bytes) {
  static const auto real = next<ssize_t(int, const void*, size_t)>("write");
  return fails(kWrite, "", bytes) ? -1 : real(fd, from, bytes);
}
#define PWRITE(name)                                                                   \
  ssize_t name(int fd, const void* from, size_t bytes, off_t at) {                     \
    static const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite"); \
    const size_t whole = bytes;                                                        \
    if (fails(kPwrite, "", bytes)) return -1;                                          \
    if (bytes != whole && fault().is_wrong)                                            \
      return real(fd, spoiled(from, whole).data(), whole, at);                         \
    return bytes != whole && fault().is_lost ? whole : real(fd, from, bytes, at);      \
  }
PWRITE(pwrite)
PWRITE(pwrite64)
#define PWRITEV(name)                                                                              \
  ssize_t name(int fd, const iovec* pieces, int count, off_t at) {                                 \
    static const auto real = next<ssize_t(int, const iovec*, int, off_t)>("pwritev");              \
    size_t bytes = count > 0 ? pieces->iov_len : 0;                                                \
    const size_t whole = bytes;                                                                    \
    if (fails(kPwrite, "pwritev", bytes)) return -1;                                               \
    return bytes == whole ? real(fd, pieces, count, at) : pwrite(fd, pieces->iov_base, bytes, at); \
  }
PWRITEV(pwritev)
PWRITEV(pwritev64)

#define FTRUNCATE(name)                                    \
  int name(int fd, off_t bytes) noexcept {                 \
    static const auto real = next<int(int, off_t)>(#name); \
    return fails(kFtruncate) ? -1 : real(fd, bytes);       \
  }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)
#define FSYNC(name)                                 \
  int name(int fd) {                                \
    static const auto real = next<int(int)>(#name); \
    return fails(kFsync) ? -1 : real(fd);           \
  }
FSYNC(fsync)
FSYNC(fdatasync)
// As in Linux: the file is closed, and the error reports an earlier write that was lost.
int close(int fd) {
  static const auto real = next<int(int)>("close");
  if (fails(kClose)) {
    const int error = errno;
    real(fd);
    errno = error;
    return -1;
  }
  return real(fd);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int(const char*, const char*)>("rename");
  return fails(kRename, to) ? -1 : real(from, to);
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static const auto real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return fails(kRename, to) ? -1 : real(at, from, to_at, to, flags);
}
int unlink(const char* path) noexcept {
  static const auto real = next<int(const char*)>("unlink");
  return fails(kUnlink, path) ? -1 : real(path);
}
int flock(int fd, int what) noexcept {
  static const auto real = next<int(int, int)>("flock");
  return fails(kFlock) ? -1 : real(fd, what);
}
#define MMAP(name)                                                                           \
  void* name(void* at, size_t bytes, int access, int flags, int fd, off_t offset) noexcept { \
    static const auto real = next<void*(void*, size_t, int, int, int, off_t)>(#name);        \
    return fails(kMmap) ? MAP_FAILED : real(at, bytes, access, flags, fd, offset);           \
  }
MMAP(mmap)
MMAP(mmap64)
#define FALLOCATE(name)                                           \
  int name(int fd, off_t at, off_t bytes) {                       \
    static const auto real = next<int(int, off_t, off_t)>(#name); \
    return fails(kFallocate) ? errno : real(fd, at, bytes);       \
  }
FALLOCATE(posix_fallocate)
FALLOCATE(posix_fallocate64)
int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return fails(kThread) ? EAGAIN : real(id, attributes, start, argument);
}

// Allocations, also by libraries and operator new.
// NOLINTBEGIN(bugprone-reserved-identifier): glibc's own
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
// NOLINTEND(bugprone-reserved-identifier)
#define OR_NULL(bytes, call) \
  (fails_small(bytes) || ((bytes) >= kLargeMemory && fails(kMalloc)) ? nullptr : (call))
void* malloc(size_t bytes) noexcept { return OR_NULL(bytes, __libc_malloc(bytes)); }
void* calloc(size_t count, size_t each) noexcept {
  return OR_NULL(count * each, __libc_calloc(count, each));
}
void* realloc(void* old, size_t bytes) noexcept {
  return OR_NULL(bytes, __libc_realloc(old, bytes));
}
void* memalign(size_t to, size_t bytes) noexcept {
  return OR_NULL(bytes, __libc_memalign(to, bytes));
}
void* aligned_alloc(size_t to, size_t bytes) noexcept { return memalign(to, bytes); }
int posix_memalign(void** out, size_t to, size_t bytes) noexcept {
  void* const got = memalign(to, bytes);
  if (got == nullptr) return ENOMEM;
  *out = got;
  return 0;
}

// What is allocated before main() cannot be given up: objects of libraries are made there.
using Main = int(int, char**, char**);
// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc's own
int __libc_start_main(Main* main, int count, char** arguments, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  static Main* real_main;
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  static const auto real = next<Start>("__libc_start_main");
  real_main = main;
  const auto counted = [](int n, char** words, char** environment) {
    void* frame[1];
    backtrace(frame, 1);  // loads what it needs
    is_in_main = true;
    const int status = real_main(n, words, environment);
    is_in_main = false;
    return status;
  };
  return real(counted, count, arguments, init, fini, rtld_fini, stack_end);
}

}  // extern "C"
#pragma GCC visibility pop
