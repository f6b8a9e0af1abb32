// Handles Ctrl-C and SIGTERM during a run on a dedicated thread, which the signal handler wakes, so
// that any function may be called. Where a console is set, this alone stops a run. All objects of
// these classes are made and destroyed by one thread.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace melflow {

/// While one exists, SIGINT, SIGTERM and SIGHUP wait for a StopOnSignal, the present or the next
/// one. Signals that still wait at the end are raised again.
class HeldSignals {
 public:
  /// Throws std::system_error.
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
};

class StopOnSignal {
 public:
  /// Calls `stop` at the first SIGINT, SIGTERM or SIGHUP; at the second calls `leave` and ends the
  /// process with kInterrupted, after half a second also where `stop` or `leave` hangs. One object
  /// at a time. To be created before the threads of a run, which then block these signals, so that
  /// their system calls are not interrupted; threads of libraries that are there already need not.
  StopOnSignal(std::function<void()> stop, std::function<void()> leave);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  void wait();
  void give_back();

  const HeldSignals held_;
  std::function<void()> stop_, leave_;
  sigset_t mask_before_{};
  int end_ = -1;                     // eventfd
  std::vector<std::thread> thread_;  // one
};

}  // namespace melflow
