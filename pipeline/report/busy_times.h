// The time that one thread spent in each node, over time, in bounded memory.
#pragma once

#include <cstddef>
#include <vector>

namespace melflow {

class BusyTimes {
 public:
  static constexpr std::size_t kMost = 300;  ///< steps
  static constexpr double kFirstStep = 0.1;  ///< [s]

  /// The thread was in `node` from `began` to `ended` [s], both not negative. Where the steps do
  /// not reach so far, every two become one. Throws std::bad_alloc; nothing is added then.
  void add(std::size_t node, double began, double ended);

  /// Of a step [s].
  [[nodiscard]] double step() const { return step_; }
  /// Makes every two steps one until they are that long.
  void widen(double step);
  /// Seconds in a node, of each step up to the last one that has any; a node that is not there was
  /// not visited.
  [[nodiscard]] const std::vector<std::vector<double>>& nodes() const { return nodes_; }

 private:
  void join_pairs();

  double step_ = kFirstStep;
  std::vector<std::vector<double>> nodes_;
};

}  // namespace melflow
