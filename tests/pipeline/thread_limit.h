// A system that has few threads to give.
#pragma once

namespace melflow::test {

/// In its life this process can make `count` more threads; pthread_create() fails for any beyond
/// that, whoever calls it. One at a time.
class ThreadLimit {
 public:
  explicit ThreadLimit(int count);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  /// Calls of pthread_create() since then, with those that failed.
  [[nodiscard]] int asked() const;
};

}  // namespace melflow::test
