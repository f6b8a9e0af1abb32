// Handles fork() and Python's shutdown, which the threads of this process do not survive.
#pragma once

#include <Python.h>
#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <optional>

namespace melflow {

/// Throws RunError in a process that was forked after the first call, and PythonEnds once Python is
/// shutting down.
void check_process();
/// Whether this is such a forked process, which has no threads to wait for.
bool is_forked_off();

/// A deleter that does nothing in a forked process, where it would wait for missing threads.
struct UnlessForkedOff {
  void operator()(std::condition_variable* condition) const {
    if (!is_forked_off()) delete condition;
  }
};
using Condition = std::unique_ptr<std::condition_variable, UnlessForkedOff>;

/// From now on this process, and all of its process group, is killed when its parent `parent` has
/// ended, whatever its threads do. To be called in the leader of the group.
void end_with_parent(pid_t parent);

/// Silently ends the Python thread in which it is thrown.
struct PythonEnds {};

/// Releases Python's lock so that other threads can run. Python's shutdown waits for threads that
/// have released it this way; afterwards the lock is not released any more: Python would end a
/// thread that asks for it again from within C++, which ends the process.
class WithoutLock {
 public:
  WithoutLock();
  ~WithoutLock();
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

/// Whether Python is shutting down.
bool python_ends();

/// The same for destructors, which Python calls with its lock held and C++ without.
class WithoutLockIfHeld {
 public:
  WithoutLockIfHeld() {
    if (PyGILState_Check() == 1) free_.emplace();
  }

 private:
  std::optional<WithoutLock> free_;
};

/// Takes Python's lock in a thread of C++, except while Python is shutting down.
class WithinPython {
 public:
  WithinPython();
  ~WithinPython();
  WithinPython(const WithinPython&) = delete;
  WithinPython& operator=(const WithinPython&) = delete;
  /// Whether the thread has the lock.
  [[nodiscard]] explicit operator bool() const { return is_within_; }

 private:
  bool is_within_ = false;
  PyGILState_STATE state_{};
};

/// Base of objects that work on dedicated threads, which must end before Python does.
class EndsWithPython {
 public:
  EndsWithPython(const EndsWithPython&) = delete;
  EndsWithPython& operator=(const EndsWithPython&) = delete;
  /// Ends the threads.
  virtual void stop() = 0;

 protected:
  EndsWithPython();
  ~EndsWithPython();
};

/// Called when Python is about to shut down, with its lock held: waits until all threads have
/// returned to Python, and stops all EndsWithPython objects.
void end_with_python();

}  // namespace melflow
