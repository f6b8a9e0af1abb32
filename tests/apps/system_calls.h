// Helpers of libraries that are preloaded into a program: finding the wrapped call, and wrapping
// calls that libc has under several names.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace melflow::test {

/// Returns the call of that name in the next library.
template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

/// Returns the argument after the flags of open(), if there is one.
inline mode_t mode_of(int flags, va_list list) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
}

}  // namespace melflow::test

// Each wrapper returns the expression `result`, in which the arguments have the names used here,
// and `real` is the wrapped call. To be used in extern "C", with `using namespace melflow::test`.
#define WRAP_OPEN(name, result)                                                           \
  int name(const char* path, int flags, ...) {                                            \
    [[maybe_unused]] static const auto real = next<int(const char*, int, mode_t)>(#name); \
    va_list list;                                                                         \
    va_start(list, flags);                                                                \
    const mode_t mode = mode_of(flags, list);                                             \
    va_end(list);                                                                         \
    return result;                                                                        \
  }
#define WRAP_OPENS(result) WRAP_OPEN(open, result) WRAP_OPEN(open64, result)

#define WRAP_OPENAT(name, result)                                                              \
  int name(int at, const char* path, int flags, ...) {                                         \
    [[maybe_unused]] static const auto real = next<int(int, const char*, int, mode_t)>(#name); \
    va_list list;                                                                              \
    va_start(list, flags);                                                                     \
    const mode_t mode = mode_of(flags, list);                                                  \
    va_end(list);                                                                              \
    return result;                                                                             \
  }
#define WRAP_OPENATS(result) WRAP_OPENAT(openat, result) WRAP_OPENAT(openat64, result)

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot be in parentheses
#define WRAP_STAT(name, type, result)                              \
  int name(const char* path, type* st) noexcept {                  \
    static const auto real = next<int(const char*, type*)>(#name); \
    return result;                                                 \
  }
// NOLINTEND(bugprone-macro-parentheses)
#define WRAP_STATS(result)              \
  WRAP_STAT(stat, struct stat, result)  \
  WRAP_STAT(lstat, struct stat, result) \
  WRAP_STAT(stat64, struct stat64, result) WRAP_STAT(lstat64, struct stat64, result)
