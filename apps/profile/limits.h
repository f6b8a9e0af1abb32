// Finds the bottleneck of a run and possible remedies, from its report alone.
//
// Every resource has a ceiling: the amount available divided by the amount that a file needs. Where
// the run used 90 % of one or more, that is its limit; otherwise the largest loss of time is named.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/profile/resources.h"

namespace melflow {

/// A change of options, and the files per second that it would reach while the stages work.
struct Hint {
  std::vector<std::pair<std::string, std::string>> sets;  ///< option and value, as for --set
  double likely = 0;
  double low = 0, high = 0;  ///< half of the gain; every remaining ceiling, reached in full
  double output_size = 1;    ///< the new size of the output divided by the present one
};

/// Work that a cache of decoded samples would save in all later runs of the same files.
struct Reuse {
  std::string source;  ///< the node whose option feed enables it; "" where it saves little
  std::vector<std::string> stages;  ///< with nothing left to do; none: loading, before all of them
  double share = 0;  ///< of the processor time of all stages; for loading, of the run's time
};

/// The wait at the end until all data is on disk, which an option asks for.
struct Sync {
  std::string sink;  ///< the node with the option; "" where this is not the cause
  double share = 0;  ///< of the run's time
};

struct Limits {
  /// False where no file was processed, so that nothing can be judged.
  bool is_known = false;
  /// While the stages worked; where loading is the cause, including the loading.
  double files_per_second = 0;
  std::vector<Ceiling> ceilings;  ///< the lowest first
  Cause cause = Cause::uneven;
  std::string node;  ///< where one stage is the cause: concurrency, disk, the queue before it
  /// The used share of a resource; for any other cause, the share of the time that it cost.
  double share = 0;
  std::string heaviest;       ///< the stage with the most processor time
  double heaviest_share = 0;  ///< of all processor time in stages
  /// Demands::taken_share(); from kDisturbed on, hints promise half as much, as they may fail.
  double taken_share = 0;
  static constexpr double kDisturbed = 0.2;
  std::vector<Hint> hints;  ///< at most three, the largest gain first; each 5 % or more
  Reuse reuse;
  Sync sync;

  /// Whether a resource is exhausted and no option provides more of it.
  [[nodiscard]] bool nothing_to_gain() const {
    return cause <= Cause::slots && hints.empty() && reuse.source.empty();
  }
};

Limits find_limits(const RunReport& report);

}  // namespace melflow
