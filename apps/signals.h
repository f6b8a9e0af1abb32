// Handles Ctrl-C and SIGTERM during a run on a dedicated thread, which the signal handler wakes, so
// that any function may be called. Where a console is set, this alone stops a run.
#pragma once

#include <csignal>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

namespace melflow {

class StopOnSignal {
 public:
  /// Calls `stop` at the first SIGINT, SIGTERM or SIGHUP; at the second calls `leave` and ends the
  /// process with kInterrupted. One object at a time. To be created before the threads of a run,
  /// which then block these signals, so that their system calls are not interrupted; threads of
  /// libraries that are there already need not.
  StopOnSignal(std::function<void()> stop, std::function<void()> leave);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  void wait();
  void give_back();

  std::function<void()> stop_, leave_;
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t wanted_{}, mask_before_{};
  struct sigaction before_[std::size(kSignals)]{};
  int caught_ = -1;                  // eventfd: signals
  int end_ = -1;                     // eventfd
  std::vector<std::thread> thread_;  // one
};

}  // namespace melflow
