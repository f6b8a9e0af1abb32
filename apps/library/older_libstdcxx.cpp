// What a wheel calls in libstdc++ that GCC 12's has under a new version (GLIBCXX_3.4.30), and that
// of systems with glibc 2.34 has not. The linker's option --wrap puts these in the place of both;
// they do the same.
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
