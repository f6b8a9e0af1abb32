// The search for faster options: chooses changes to try, and confirms them by pairs of runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

/// Options and values, as for --set.
using Settings = std::vector<std::pair<std::string, std::string>>;

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

/// The speed-up: the median ratio of pairs of runs, and its 95 % confidence interval by bootstrap
/// over the pairs.
struct Gain {
  double middle = 1, low = 1, high = 1;
  /// Whether the gain exceeds noise and is worth a change.
  [[nodiscard]] bool is_real() const { return low > 1 && middle >= kWorthIt; }
  static constexpr double kWorthIt = 1.03;
};
/// Both lists have the same length, at least one; every value is greater than 0.
Gain gain_of(const std::vector<double>& without, const std::vector<double>& with,
             std::uint64_t seed);

}  // namespace melflow
