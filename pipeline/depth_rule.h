// How deep a queue is next, from what was seen since the last review: the rule alone, without graph
// or clock. docs/decisions/0010-queue-depth.md has the reasons and the figures.
#pragma once

#include <cstddef>
#include <functional>

namespace melflow {

class DepthRule {
 public:
  /// Between `least` and `greatest` places, from `first` on.
  DepthRule(std::size_t least, std::size_t first, std::size_t greatest)
      : least_(least), greatest_(greatest), settled_least_(least), capacity_(first) {}

  /// Shares, from 0 to 1.
  struct Seen {
    double starved = 0;    ///< of the consumer's concurrency: it had no input
    double held_back = 0;  ///< of the producer's concurrency: it had no place for its output
    double full = 0;       ///< of the items that came: they found no place free
    bool is_memory_wanted = false;     ///< somebody waits for memory
    bool is_memory_half_used = false;  ///< or more than half
  };
  /// The depth from now on. `workers_busy`: the share of the workers' time that was used since it
  /// was asked for the last time; only asked for where the queue would be deepened.
  std::size_t next(const Seen& seen, const std::function<double()>& workers_busy);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  const std::size_t least_, greatest_;
  std::size_t settled_least_;  // less than this has proved too little
  std::size_t capacity_;
};

}  // namespace melflow
