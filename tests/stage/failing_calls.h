// System calls that fail, or end the program, at the n-th time: this test program defines functions
// of these names.
#pragma once

#include <functional>
#include <string>

namespace melflow::test {

/// As long as it lives, the n-th (from 1 on) of all calls of renameat2, link, unlink, fsync,
/// fdatasync, pwrite and close fails with EIO and does nothing (but a file is closed in any case);
/// with `is_end` the process ends there. 0: none fails.
class FailingCall {
 public:
  explicit FailingCall(int n, bool is_end = false);
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall();
  /// Whether that call was made.
  [[nodiscard]] bool is_past() const;
};

/// Calls `then` when the program queries the state of the open file `path` for the first time.
class AfterFstat {
 public:
  AfterFstat(const std::string& path, std::function<void()> then);
  AfterFstat(const AfterFstat&) = delete;
  AfterFstat& operator=(const AfterFstat&) = delete;
  ~AfterFstat();
};

/// As long as it lives, locking fails with `error`.
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
/// Runs `what` in another process, which ends in the n-th call if it makes that many. Returns
/// whether it did.
template <class What>
bool ends_in_call(int n, const What& what) {
  return detail::in_child(
      n, [](const void* w) { (*static_cast<const What*>(w))(); }, &what);
}

}  // namespace melflow::test
