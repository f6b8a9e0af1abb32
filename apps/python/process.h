// Handles fork() and the shutdown of Python, which the threads of this process do not survive.
#pragma once

#include <Python.h>

#include <condition_variable>
#include <memory>

namespace melflow {

/// Throws RunError in a process that was forked off from one in which this was called before, and
/// PythonEnds once Python is ending.
void check_process();
/// Whether this is such a process: it has no threads that could be waited for.
bool is_forked_off();

/// Not destroyed in a process that was forked off: that would wait for threads which are not there.
struct UnlessForkedOff {
  void operator()(std::condition_variable* condition) const {
    if (!is_forked_off()) delete condition;
  }
};
using Condition = std::unique_ptr<std::condition_variable, UnlessForkedOff>;

/// Ends the thread of Python that it is thrown in, without a word.
struct PythonEnds {};

/// Lets other threads of Python run in the meantime. When Python is ending it does not: a thread
/// that asks for Python's lock after that is ended by Python from within C++, which ends the
/// process.
class WithoutLock {
 public:
  WithoutLock();
  ~WithoutLock();
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

/// What works on dedicated threads, which are not to outlive Python.
class EndsWithPython {
 public:
  EndsWithPython(const EndsWithPython&) = delete;
  EndsWithPython& operator=(const EndsWithPython&) = delete;
  /// Ends these threads.
  virtual void stop() = 0;

 protected:
  EndsWithPython();
  ~EndsWithPython();
};

/// When Python is about to end: waits until all threads have come back to it, and stops what works
/// on dedicated threads. With Python's lock.
void end_with_python();

}  // namespace melflow
