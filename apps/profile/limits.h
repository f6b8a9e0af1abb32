// Finds the bottleneck of a run and possible remedies, from its report alone.
//
// Every resource has a ceiling: the amount available divided by the amount that a file needs. Where
// the run used 90 % of one or more, that is its limit; otherwise the largest loss of time is named.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/profile/resources.h"

namespace melflow {

/// Options and values, as for --set.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A change of options, and what it would bring.
struct Hint {
  Settings sets;
  double likely = 0;         ///< files per second while the stages work
  double low = 0, high = 0;  ///< half of the gain; every remaining ceiling, reached in full
  double output_size = 1;    ///< the new size of the output divided by the present one
};

/// A change of options that has another price or another time than speed alone.
struct Saving {
  Settings sets;
  double share = 0;  ///< of the processor time of the stages, or of the run's time
  /// The stages that would have nothing left to do; empty: the loading before all stages, or the
  /// wait for the disk.
  std::vector<std::string> stages = {};
};

struct Limits : Limit {
  Demands demands;
  /// While the stages worked; where loading is the cause, including the loading.
  double files_per_second = 0;
  std::vector<Ceiling> ceilings;  ///< the lowest first; none where no file was processed
  std::string heaviest;           ///< the stage with the most processor time
  double heaviest_share = 0;      ///< of all processor time in stages
  /// Demands::taken_share(); from kDisturbed on, hints promise half as much, as they may fail.
  double taken_share = 0;
  static constexpr double kDisturbed = 0.2;
  std::vector<Hint> hints;  ///< at most three, the largest gain first; each 5 % or more
  /// A cache of decoded samples, which saves work in all later runs of the same files.
  std::optional<Saving> reuse;
  /// An output that is not waited for until all of it is on disk.
  std::optional<Saving> sync;

  /// False where no file was processed, so that nothing can be judged.
  [[nodiscard]] bool is_known() const { return !ceilings.empty(); }
  /// Whether a resource is exhausted and no option provides more of it.
  [[nodiscard]] bool nothing_to_gain() const {
    return cause <= Cause::slots && hints.empty() && !reuse;
  }
};

Limits find_limits(const RunReport& report);

/// Returns the hints for limits that are complete but for them. `is_used_up`: whether a resource
/// is exhausted; otherwise the run lost the share `limits.share` of its time.
std::vector<Hint> hints_for(const Limits& limits, const RunReport& report, bool is_used_up);

}  // namespace melflow
