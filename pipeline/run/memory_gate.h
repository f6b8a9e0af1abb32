// Decides which work gets memory of the budget next: source items that are made but not admitted
// yet, and files that have a further block to give. Work holds no place in a queue while it waits
// here, so no other work waits for it; and the oldest source item has a reserve of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/base/measuring.h"
#include "pipeline/run/work.h"

namespace melflow {

/// Threads: any. A node is called on the thread that asked, gave memory back or called pump(), with
/// no lock held; it may ask again from there.
/// Lifetime: does not own work; Work and its node stay until the gate has called the node.
/// Locks: while it holds its own, it takes those of MemoryBudget and Stream, and no other.
/// Errors: a reservation for which there is no memory counts as refused, so the work waits on.
class MemoryGate {
 public:
  /// What is reserved by now stays reserved for the whole run.
  MemoryGate(RunContext& run, std::size_t nodes);

  /// Asks for `bytes` bytes for `work`. True: it has them. Else the gate calls granted() or
  /// cut_off() of the node when that is decided, perhaps before this returns.
  [[nodiscard]] bool ask(Work* work, GraphNode& node, std::size_t bytes);
  /// Checks all waiting work, after memory came back or work may have failed. Returns whether any
  /// node was called.
  bool pump() { return tell(nullptr) != Told::nobody; }
  /// Calls pump() if any work waits.
  void memory_freed() {
    if (is_waiting_.load()) pump();
  }
  /// Gives no more memory; waiting work is cut off by the next pump(). Calls no node.
  void close();
  /// Called when nothing moves, with the value that told() had before that was found. If work waits
  /// for memory that is held outside of the graph (by a thread of a sink's own), waits until some
  /// of it came back, or for close(). False: no work waits for that, or it helped none.
  [[nodiscard]] bool wait(std::uint64_t told);

  /// Whether a node is being called, and how often nodes were called. This may happen on any
  /// thread, since memory may come back on any.
  [[nodiscard]] bool is_telling() const { return telling_.load() > 0; }
  [[nodiscard]] std::uint64_t told() const { return told_.load(); }
  [[nodiscard]] double wait_seconds() const;
  /// The share of the reserved memory that each node held while work waited; empty if none did.
  [[nodiscard]] std::vector<double> holders() const;

 private:
  using Clock = RunClock;
  struct Waiter {
    Work* work;
    GraphNode* node;
    std::size_t bytes;
    bool is_source;
  };
  enum class Told { nobody, others, asker };
  // Adds `asker`, unless it is null, and calls the node of all work that is decided, except for an
  // asker that gets its memory: the result says so.
  Told tell(const Waiter* asker);
  void note_waiting(bool waiting);
  [[nodiscard]] std::shared_ptr<const Reservation> reserve(const Waiter& w);

  RunContext& run_;
  const std::size_t kept_;  // reserved for the whole run [bytes]
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // pump() or close() was called
  std::vector<Waiter> waiters_;      // oldest source item first
  bool closed_ = false;
  std::atomic<bool> is_waiting_{false};
  std::atomic<int> telling_{0};
  std::atomic<std::uint64_t> told_{0};
  std::optional<Clock::time_point> since_;  // work waits
  double wait_seconds_ = 0;
  // Sums of what each node held when it was looked at [bytes].
  std::vector<double> holders_;
  Clock::time_point looked_;
};

}  // namespace melflow
