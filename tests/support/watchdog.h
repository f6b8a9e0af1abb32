// Aborts a test that hangs: a concurrency test that waits for ever has failed, and must name
// itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/sanitized.h"

namespace melflow::test {

class Watchdog {
 public:
  /// Less than CTest's limit for a whole file of tests, so that the hanging test is named first;
  /// far more than any test takes on a busy machine.
  static constexpr std::chrono::seconds kLimit{kSanitized ? 800 : 270};

  /// Aborts the process unless the object is destroyed in time. Prints `what`, and the result of
  /// `state` at that moment.
  explicit Watchdog(std::string what, std::function<std::string()> state = {})
      : what_(std::move(what)), state_(std::move(state)), thread_([this] { wait(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kLimit, [this] { return done_; })) return;
    std::fprintf(stderr, "watchdog: not done after %lld s: %s %s\n",
                 static_cast<long long>(kLimit.count()), what_.c_str(),
                 state_ ? state_().c_str() : "");
    std::abort();
  }

  const std::string what_;
  const std::function<std::string()> state_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace melflow::test
