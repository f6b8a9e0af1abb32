// Preloaded into a program: simulates a disk that several machines share, and such a machine.
//
// In:  MELFLOW_CLOCK=S      the time of day is S seconds off
//      MELFLOW_MACHINE=FILE the identity of this boot of the machine, instead of the kernel's file
//      MELFLOW_LOCKS=none   file locks are not supported; =own: they hold on this machine alone, so
//                           that each request succeeds
//      MELFLOW_STALE=N      a name in the folders of job/ is looked up N times before it is found,
//                           unless this program has made it; creating a new file of that name fails
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

// Counts for how many look-ups a name is still not found.
class View {
 public:
  // Returns true for each look-up that does not find it.
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
