// Handles Ctrl-C and SIGTERM during a run on a dedicated thread instead of a signal handler, so
// that any function may be called. Where a console is set, this alone stops a run.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace melflow {

class StopOnSignal {
 public:
  /// Calls `stop` at the first SIGINT, SIGTERM or SIGHUP; at the second calls `leave` and ends the
  /// process with kInterrupted. To be created before any other thread, so that all threads block
  /// these signals.
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
