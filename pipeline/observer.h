// What the nodes of a run are doing, told as it happens: for a profiler's timeline.
#pragma once

#include <cstdint>

namespace melflow {

/// Nodes are numbered in the order of the plan. Called from many threads at once, outside of the
/// scheduler's lock.
class RunObserver {
 public:
  RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
  virtual ~RunObserver() = default;

  /// The calling thread works for the node until it calls leave(); on one thread these pairs nest.
  virtual void enter(int node) noexcept = 0;
  virtual void leave() noexcept = 0;
  /// The node's Engine has an item under way, until end() is called with what this returns.
  [[nodiscard]] virtual std::uint64_t begin(int node) noexcept = 0;
  virtual void end(std::uint64_t item) noexcept = 0;
};

}  // namespace melflow
