// Ctrl-C and SIGTERM during a run, on a thread of their own instead of in a signal handler, so that
// anything may be called.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace melflow {

class StopOnSignal {
 public:
  /// `stop` at the first SIGINT, SIGTERM or SIGHUP; at the second one `leave`, and the process ends
  /// with kInterrupted. Make it before any other thread: they inherit that these are blocked.
  StopOnSignal(std::function<void()> stop, std::function<void()> leave);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  void wait();
  void give_back();

  std::function<void()> stop_, leave_;
  sigset_t before_{};
  int signals_ = -1;
  int end_ = -1;
  std::vector<std::thread> thread_;  // one
};

}  // namespace melflow
