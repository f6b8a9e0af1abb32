// Functions that a wheel calls in libstdc++ and that GCC 12 gives a new version (GLIBCXX_3.4.30),
// which systems with glibc 2.34 lack. The linker's option --wrap replaces them by these, which do
// the same.
#include <pthread.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

extern "C" {
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
  pthread_cond_wait(condition.native_handle(), lock.mutex()->native_handle());
}

[[noreturn]] void __wrap__ZSt21__glibcxx_assert_failPKciS0_S0_(const char* file, int line,
                                                               const char* function,
                                                               const char* condition) {
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  std::abort();
}
}
