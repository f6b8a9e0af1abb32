// Preloaded into a program: a disk that several machines share, and the machine it runs on, as such
// disks and machines are.
//
// In:  MELFLOW_CLOCK=S      the time of day is S seconds off
//      MELFLOW_MACHINE=FILE the identity of this start of the machine, in place of the kernel's
//                           file
//      MELFLOW_LOCKS=none   there are no locks of files; =own: they hold on this machine alone, so
//                           that each is given
//      MELFLOW_STALE=N      a name in the folders of job/ is looked for N times before it is seen,
//                           unless this program has made it; making a new file of that name fails
//                           at once, as servers guarantee
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>

#include "tests/apps/system_calls.h"

using namespace melflow::test;

namespace {

long number(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? 0 : atol(text);
}

// How often a name is still not seen.
class View {
 public:
  // True once for each time that it is not.
  bool misses(const char* path) {
    static const long times = number("MELFLOW_STALE");
    const char* inside = strstr(path, "job/");
    if (times == 0 || inside == nullptr || strchr(inside + 4, '/') == nullptr) return false;
    const std::lock_guard lock(mutex_);
    return left_.try_emplace(path, times).first->second-- > 0;
  }
  void made(const char* path) {
    const std::lock_guard lock(mutex_);
    left_[path] = 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, long> left_;
};

View& view() {
  static View it;
  return it;
}

bool misses(const char* path) {
  if (!view().misses(path)) return false;
  errno = ENOENT;
  return true;
}

const char* seen(const char* path) {
  const char* machine = getenv("MELFLOW_MACHINE");
  return machine != nullptr && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 ? machine
                                                                                    : path;
}

int open_seen(int (*real)(const char*, int, mode_t), const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) == 0) return misses(path) ? -1 : real(seen(path), flags, mode);
  const int fd = real(path, flags, mode);
  if (fd >= 0) view().made(path);
  return fd;
}

}  // namespace

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wnonnull-compare"
extern "C" {

WRAP_OPENS(open_seen(real, path, flags, mode))
WRAP_STATS(misses(path) ? -1 : real(path, st))

int link(const char* from, const char* to) noexcept {
  static const auto real = next<int(const char*, const char*)>("link");
  const int code = real(from, to);
  if (code == 0) view().made(to);
  return code;
}
int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int(const char*, const char*)>("rename");
  const int code = real(from, to);
  if (code == 0) view().made(to);
  return code;
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static const auto real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const int code = real(at, from, to_at, to, flags);
  if (code == 0) view().made(to);
  return code;
}

int flock(int fd, int what) noexcept {
  static const auto real = next<int(int, int)>("flock");
  static const char* locks = getenv("MELFLOW_LOCKS");
  if (locks == nullptr) return real(fd, what);
  if (strcmp(locks, "own") == 0) return 0;
  errno = EOPNOTSUPP;
  return -1;
}

int clock_gettime(clockid_t clock, timespec* at) noexcept {
  static const auto real = next<int(clockid_t, timespec*)>("clock_gettime");
  static const long off = number("MELFLOW_CLOCK");
  const int code = real(clock, at);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += off;
  return code;
}
time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
