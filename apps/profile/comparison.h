// Compares two runs: what became slower or faster, and whether that exceeds noise.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// The speed of a run as its report states it, as far as a comparison needs it.
struct RunSpeed {
  struct Stage {
    std::string name;
    double busy = 0, cpu = 0;  ///< seconds per file: in the stage, and on a core
    double calls = 0;
    double p50 = 0, p90 = 0, p99 = 0;  ///< of a call [s]
  };
  double files = 0;
  double files_per_second = 0;  ///< while the stages worked
  double taken_by_others = 0;   ///< Demands::taken_share()
  std::string limit = {};       ///< the limiting cause and its node, as text
  std::vector<Stage> stages;
};

struct Change {
  std::string name;              ///< of the stage; "" for the whole run
  double before = 0, after = 0;  ///< seconds per file in the stage; files/s for the whole run
  double cpu_before = 0, cpu_after = 0;
  double noise = 0;  ///< changes up to this share are not significant
  [[nodiscard]] double share() const { return before > 0 ? after / before - 1 : 0; }
  /// Whether the change exceeds the noise.
  [[nodiscard]] bool is_real() const;
};

struct Comparison {
  Change whole;
  std::vector<Change> stages;  ///< of stages in both runs, the largest slowdown first
  std::vector<std::string> only_before, only_after;
  [[nodiscard]] bool is_slower() const { return whole.is_real() && whole.after < whole.before; }
};

/// How noise is judged: a change counts where it exceeds the largest of
///   - 5 %, by which runs of the same pipeline differ on an idle machine;
///   - three standard errors of the stage's mean call in both runs; their standard deviation is
///     estimated from percentiles as for a normal distribution;
///   - the share of the cores that other programs took in either run.
/// One run of each tells no more; several alternating runs of both would.
Comparison compare_runs(const RunSpeed& before, const RunSpeed& after);

}  // namespace melflow
