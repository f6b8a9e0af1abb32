#include "tests/pipeline/thread_limit.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>

namespace {
std::atomic<int> most{INT_MAX}, calls{0};
}  // namespace

// Replaces the C library's function (or a sanitizer's), which it calls: the program's own comes
// first, also for shared libraries.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (calls++ >= most) return EAGAIN;
  return next(thread, attributes, start, argument);
}

namespace melflow::test {

ThreadLimit::ThreadLimit(int count) {
  calls = 0;
  most = count;
}
ThreadLimit::~ThreadLimit() { most = INT_MAX; }
int ThreadLimit::asked() const { return calls; }

}  // namespace melflow::test
