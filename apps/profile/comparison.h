// Compares two runs: what got slower or faster, and whether that is more than noise.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// What a run's report says of its speed, as far as two are compared by it.
struct RunSpeed {
  struct Stage {
    std::string name;
    double busy = 0, cpu = 0;  ///< in the stage, and of a core there [s a file]
    double calls = 0;
    double p50 = 0, p90 = 0, p99 = 0;  ///< of a call [s]
  };
  double files = 0;
  double files_per_second = 0;  ///< while the stages worked
  double taken_by_others = 0;   ///< Demands::taken_share()
  std::string limit = {};       ///< to_text() of its cause, and the node
  std::vector<Stage> stages;
};

struct Change {
  std::string name;              ///< of the stage; "" of the whole
  double before = 0, after = 0;  ///< s a file in the stage; of the whole: files/s
  double cpu_before = 0, cpu_after = 0;
  double noise = 0;  ///< a change up to this share says nothing
  [[nodiscard]] double share() const { return before > 0 ? after / before - 1 : 0; }
  /// Whether it is more than noise.
  [[nodiscard]] bool is_real() const;
};

struct Comparison {
  Change whole;
  std::vector<Change> stages;  ///< of both runs, what got slower by most first
  std::vector<std::string> only_before, only_after;
  [[nodiscard]] bool is_slower() const { return whole.is_real() && whole.after < whole.before; }
};

/// How noise is judged: a change counts where it is more than the greatest of
///   - 5 %, by which runs of the same pipeline differ on a machine at rest;
///   - three standard errors of the mean of the stage's calls in both runs, whose standard
///     deviation is taken from percentiles as of a normal distribution;
///   - what other programs took of the cores in either run.
/// Of one run each no more can be known; several runs of both, in turn, say more.
Comparison compare_runs(const RunSpeed& before, const RunSpeed& after);

}  // namespace melflow
