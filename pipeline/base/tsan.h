// Tells ThreadSanitizer about tasks passed to oneTBB. Does nothing in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)  // GCC
#define MELFLOW_TSAN
#elif defined(__has_feature)  // Clang
#if __has_feature(thread_sanitizer)
#define MELFLOW_TSAN
#endif
#endif
#ifdef MELFLOW_TSAN
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

// ThreadSanitizer cannot see into oneTBB's library. These tell it that a task is sent before it
// runs, and that it ends before wait_for_all() returns.
namespace melflow::tsan {
#ifdef MELFLOW_TSAN
inline void acquire(void* address) { __tsan_acquire(address); }
inline void release(void* address) { __tsan_release(address); }
#else
inline void acquire(void*) {}
inline void release(void*) {}
#endif
}  // namespace melflow::tsan
