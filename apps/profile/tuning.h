// The search for faster options: which change to try next, and whether pairs of runs confirm it.
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

/// An option that changes the speed of a run and never its rows.
struct TunableOption {
  std::string name;                 ///< "read.queue"
  std::string node;                 ///< "" of the run
  std::string usual;                ///< the value that it has where nothing is written
  std::vector<std::string> others;  ///< further values worth a trial
  std::string present;              ///< the one that it has in the pipeline
  [[nodiscard]] bool is_unusual() const { return present != usual; }
};

/// Proposes changes: the hints for what limits the fastest run so far, then the usual values in the
/// place of all written ones, then single options, those of the limiting node first, the others
/// in an order by the seed. Nothing is proposed twice.
class TuningSearch {
 public:
  TuningSearch(std::vector<TunableOption> options, std::uint64_t seed);
  /// `best`: the changes of the fastest so far, of which `limits` are. Empty: nothing is left.
  Settings next(const Settings& best, const Limits& limits);
  /// Whether all of these are among the options.
  [[nodiscard]] bool may_change(const Settings& settings) const;

 private:
  bool is_new(const Settings& settings);

  std::vector<TunableOption> options_;
  std::vector<std::pair<std::size_t, std::string>> single_;  // option and value, in random order
  std::set<Settings> proposed_;
};

/// `base` with these changes, sorted by name.
Settings with_changes(const Settings& base, const Settings& changes);

/// How many times as fast: the median ratio of pairs of runs, and where 95 % of the medians of
/// pairs drawn again from them lie (the bootstrap).
struct Gain {
  double middle = 1, low = 1, high = 1;
  /// Faster by more than noise, and by as much as is worth a change.
  [[nodiscard]] bool is_real() const { return low > 1 && middle >= kWorthIt; }
  static constexpr double kWorthIt = 1.03;
};
/// Of the same number of runs, at least one, each greater than 0.
Gain gain_of(const std::vector<double>& without, const std::vector<double>& with,
             std::uint64_t seed);

}  // namespace melflow
