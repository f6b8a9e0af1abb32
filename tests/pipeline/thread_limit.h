// Simulates a system that has few threads to give.
#pragma once

namespace melflow::test {

/// Lets this process create `count` more threads during its lifetime; pthread_create() fails after
/// that, whoever calls it. One object at a time.
class ThreadLimit {
 public:
  explicit ThreadLimit(int count);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  /// Returns the number of pthread_create() calls since then, including failed ones.
  [[nodiscard]] int asked() const;
};

}  // namespace melflow::test
