// Finds the bottleneck of a run, and what would help, from its report alone.
//
// Every resource has a ceiling: what there is of it over what a file asks of it. Where the run used
// 90 % of one or more, that is its limit; otherwise time was lost, and what lost most is named.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/profile/resources.h"

namespace melflow {

/// A change of options, and the files per second that it would bring while the stages work.
struct Hint {
  std::vector<std::pair<std::string, std::string>> sets;  ///< option and value, as for --set
  double likely = 0;
  double low = 0, high = 0;  ///< half of the gain; every ceiling that is left, reached in full
  double output_size = 1;    ///< times as large as now
};

/// Work that a cache of decoded samples would save all later runs of the same files.
struct Reuse {
  std::string source;  ///< the node whose option feed it is; "" where it saves little
  std::vector<std::string>
      stages;        ///< that would have nothing to do; none: loading before them all
  double share = 0;  ///< of the processor time of all stages; of loading: of the time
};

/// Waiting at the end until the system has everything on disk, which an option asks for.
struct Sync {
  std::string sink;  ///< the node with the option; "" where that is not the cause
  double share = 0;  ///< of the time
};

struct Limits {
  /// False where there is nothing to judge by: no file was dealt with.
  bool is_known = false;
  /// While the stages worked; where loading is the cause, loading included.
  double files_per_second = 0;
  std::vector<Ceiling> ceilings;  ///< the lowest first
  Cause cause = Cause::uneven;
  std::string node;  ///< where the cause is one stage's: concurrency, disk, queue before it
  /// Of a resource: how much of it was used; of anything else: the share of the time it cost.
  double share = 0;
  std::string heaviest;       ///< the stage with the most processor time
  double heaviest_share = 0;  ///< of all processor time in stages
  /// Demands::taken_share(); from kDisturbed on, hints may bring nothing, and promise half as much.
  double taken_share = 0;
  static constexpr double kDisturbed = 0.2;
  std::vector<Hint> hints;  ///< at most three, what brings most first; each 5 % or more
  Reuse reuse;
  Sync sync;

  /// Whether a resource is used up, and no option gives more of it.
  [[nodiscard]] bool nothing_to_gain() const {
    return cause <= Cause::slots && hints.empty() && reuse.source.empty();
  }
};

Limits find_limits(const RunReport& report);

}  // namespace melflow
