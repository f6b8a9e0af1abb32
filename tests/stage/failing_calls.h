// Calls of the system that fail, or end the program, the n-th time: this test program has functions
// of these names of its own.
#pragma once

#include <functional>
#include <string>

namespace melflow::test {

/// As long as it lives, the n-th (from 1 on) of all calls of renameat2, link, unlink, fsync,
/// fdatasync, pwrite and close fails with EIO, what it was asked for not done (a file is closed all
/// the same); or `is_end`: the process ends there. 0: none.
class FailingCall {
 public:
  explicit FailingCall(int n, bool is_end = false);
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall();
  /// It has failed.
  [[nodiscard]] bool is_past() const;
};

/// When the program has asked for the state of the open file `path` for the first time, `then` is
/// called.
class AfterFstat {
 public:
  AfterFstat(const std::string& path, std::function<void()> then);
  AfterFstat(const AfterFstat&) = delete;
  AfterFstat& operator=(const AfterFstat&) = delete;
  ~AfterFstat();
};

/// As long as it lives, locks fail with `error`.
class NoLocks {
 public:
  explicit NoLocks(int error);
  NoLocks(const NoLocks&) = delete;
  NoLocks& operator=(const NoLocks&) = delete;
  ~NoLocks();
};

namespace detail {
bool in_child(int n, void (*run)(const void*), const void* what);
}
/// Runs `what` in a process of its own, which ends in the n-th call if it makes so many. True if it
/// did.
template <class What>
bool ends_in_call(int n, const What& what) {
  return detail::in_child(
      n, [](const void* w) { (*static_cast<const What*>(w))(); }, &what);
}

}  // namespace melflow::test
