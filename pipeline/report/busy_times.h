// The time that one thread spent in each node, in steps of time, in bounded memory.
#pragma once

#include <cstddef>
#include <vector>

namespace melflow {

class BusyTimes {
 public:
  static constexpr std::size_t kMost = 300;  ///< steps
  static constexpr double kFirstStep = 0.1;  ///< [s]

  /// Notes that the thread was in `node` from `began` to `ended` [s], both not negative. Joins
  /// pairs of steps until they reach that far. Throws std::bad_alloc and then adds nothing.
  void add(std::size_t node, double began, double ended);

  /// The length of a step [s].
  [[nodiscard]] double step() const { return step_; }
  /// Joins pairs of steps until they are `step` long.
  void widen(double step);
  /// Seconds per node and step, up to the last step with any; nodes beyond the end of the list were
  /// not visited.
  [[nodiscard]] const std::vector<std::vector<double>>& nodes() const { return nodes_; }

 private:
  void join_pairs();

  double step_ = kFirstStep;
  std::vector<std::vector<double>> nodes_;
};

}  // namespace melflow
