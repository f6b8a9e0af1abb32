// The rule for a queue's next depth, from what was measured since the last review; it uses no graph
// and no clock. docs/decisions/0010-queue-depth.md has the reasons and the figures.
#pragma once

#include <cstddef>
#include <functional>

namespace melflow {

class DepthRule {
 public:
  /// The depth stays between `least` and `greatest` places and begins with `first`.
  DepthRule(std::size_t least, std::size_t first, std::size_t greatest)
      : least_(least), greatest_(greatest), settled_least_(least), capacity_(first) {}

  /// What was measured; shares are from 0 to 1.
  struct Seen {
    double starved = 0;    ///< share of the consumer's concurrency that had no input
    double held_back = 0;  ///< share of the producer's concurrency that had no place for its output
    double full = 0;       ///< share of the items that found no free place
    bool is_memory_wanted = false;     ///< whether an item waits for memory
    bool is_memory_half_used = false;  ///< whether half of the memory or more is in use
  };
  /// The depth from now on. `workers_busy` gives the share of the workers' time that was used since
  /// its last call; it is called only when the queue would be deepened.
  std::size_t next(const Seen& seen, const std::function<double()>& workers_busy);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  const std::size_t least_, greatest_;
  std::size_t settled_least_;  // smaller depths have proved too small
  std::size_t capacity_;
};

}  // namespace melflow
