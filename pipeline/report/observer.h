// An observer is called while the nodes of a run work, for a profiler's timeline.
#pragma once

#include <cstdint>

namespace melflow {

/// Nodes are numbered in the order of the plan. Called from many threads at once, without the
/// scheduler's lock.
class RunObserver {
 public:
  RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
  virtual ~RunObserver() = default;

  /// The calling thread works for the node until it calls leave(). Pairs nest on one thread.
  virtual void enter(int node) noexcept = 0;
  virtual void leave() noexcept = 0;
  /// The node's Engine begins an item. When the item is done, end() is called with the value
  /// returned here.
  [[nodiscard]] virtual std::uint64_t begin(int node) noexcept = 0;
  virtual void end(std::uint64_t item) noexcept = 0;
};

}  // namespace melflow
