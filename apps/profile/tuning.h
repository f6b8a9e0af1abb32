// The search for faster options: chooses changes to try, and confirms them by pairs of runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

/// An option that changes the speed of a run, never its rows.
struct TunableOption {
  std::string name;                 ///< "read.queue"
  std::string node;                 ///< "" for options of the run
  std::string usual;                ///< the default
  std::vector<std::string> others;  ///< further values worth trying
  std::string present;              ///< its value in the pipeline
  [[nodiscard]] bool is_unusual() const { return present != usual; }
};

/// Proposes changes: first the hints for the limit of the fastest run so far, then default values
/// in place of all written ones, then single options, the limiting node's first and the others in
/// an order drawn from the seed. Nothing is proposed twice.
class TuningSearch {
 public:
  TuningSearch(std::vector<TunableOption> options, std::uint64_t seed);
  /// Returns untried changes, or none. `best`: changes of the fastest run; `limits`: its limits.
  Settings next(const Settings& best, const Limits& limits);
  /// Whether all settings are among the options.
  [[nodiscard]] bool may_change(const Settings& settings) const;

 private:
  bool is_new(const Settings& settings);

  std::vector<TunableOption> options_;
  std::vector<std::pair<std::size_t, std::string>> single_;  // option and value, in random order
  std::set<Settings> proposed_;
};

/// Returns `base` with these changes applied, sorted by name.
Settings with_changes(const Settings& base, const Settings& changes);

/// Runs without and with a change, in turn [files/s while the stages worked]. Both lists have the
/// same length, at least one, and every value is greater than 0.
struct Pairs {
  std::vector<double> without, with;
};

/// The speed-up: the median ratio of pairs of runs, and its 95 % confidence interval by bootstrap
/// over the pairs, which is that from the smallest ratio to the largest for up to three pairs.
struct Gain {
  double middle = 1, low = 1, high = 1;
  /// Whether the gain exceeds noise and is worth a change.
  [[nodiscard]] bool is_real() const { return low > 1 && middle >= kWorthIt; }
  static constexpr double kWorthIt = 1.03;
};
Gain gain_of(const Pairs& pairs, std::uint64_t seed = 1);
/// Returns the share of a hint's likely gain that pairs of runs reached in the middle. `before`:
/// the files per second on which the hint was based.
double reached(const Gain& gain, const Hint& hint, double before);
/// Whether that is half of the likely gain to one and a half times it.
bool is_as_predicted(double reached);

}  // namespace melflow
