// The cost of a file in each stage and on each resource of the machine, and the files per second
// that each of them could serve.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/report.h"

namespace melflow {

/// Causes that hold a run back. The first five are resources with a ceiling; the others lose time.
enum class Cause {
  cores,      ///< the processor
  disk,       ///< waiting while reading
  lock,       ///< Python's lock, which one thread at a time has
  workers,    ///< the run's threads, all of them busy in stages
  slots,      ///< a stage's concurrency
  memory,     ///< files wait for the budget
  queue,      ///< a queue that is full and empty in turn
  few_files,  ///< fewer files than could be processed at once
  ending,     ///< the last files: some slots have nothing left to do
  beginning,  ///< until the first rows came out
  listing,    ///< before the stages: finding files, opening outputs
  loading,    ///< before the stages: loading the audio
  closing,    ///< after the stages: closing and checking outputs
  program,    ///< a training program that takes batches
  uneven,     ///< no single cause for long: the stages waited for each other
};
const char* to_text(Cause cause);

/// From this share of processor time on, a worker in a stage counts as a busy core: more workers
/// than cores then do not help.
constexpr double kAllWorking = 0.8;

/// A cause that held a run back, or could.
struct Limit {
  Cause cause = Cause::uneven;
  std::string node = {};  ///< where one stage is the cause: slots, disk, lock, the queue before it
  /// The used share of a resource: 0 to 1, or slightly more; for any other cause, the share of the
  /// time that it cost.
  double share = 0;
};

/// The most files per second that a resource can serve, while the stages work.
struct Ceiling : Limit {
  double files_per_second = 0;
};

/// Another value of an option that changes no rows, and the cost of a run with it.
struct CheaperValue {
  std::string option, value;  ///< "level", "1"
  double saves = 0;           ///< share of the stage's time
  double size = 1;            ///< of the output, relative to now
};

/// What a file needs, on average over all files [s], and the resources available for it.
struct Demands {
  struct Stage {
    std::string name;
    ConcurrencyOption option;
    int slots = 1;
    bool on_workers = true;
    double busy = 0;  ///< on a slot
    double cpu = 0;   ///< on a core
    double disk = 0;  ///< on a slot, waiting for the disk
    std::optional<CheaperValue> cheaper;
    double lock = 0;          ///< with Python's lock
    bool is_movable = false;  ///< whether other processes can make its calls of Python
    /// Whether its slots are not `concurrency` of them, but calls of Python that are made in other
    /// processes or in batches.
    bool has_calls = false;
    /// Whether these calls, of other processes, hardly wait but for a core: more of them than there
    /// are cores do not help.
    bool computes = false;
  };
  std::vector<Stage> stages;
  int workers = 1, cores = 1;
  int files = 0;
  double core_wait = 0;         ///< threads that were ready but had no core [s]
  double between = 0;           ///< on a core, to pass a file from stage to stage
  double files_per_second = 0;  ///< reached while the stages worked

  /// The time of all stages that run on the workers, and between stages.
  [[nodiscard]] double worker_seconds() const;
  [[nodiscard]] double core_seconds() const;  ///< of all stages, and between stages
  /// The share of the workers' time in stages that they computed or waited for a core; 0 to 1.
  [[nodiscard]] double workers_processor_share() const;
  /// Of the time in which this program's threads computed or waited for a core, the share spent
  /// waiting because other programs had it; 0 with more workers and other processes of stages than
  /// cores, which compete with each other.
  [[nodiscard]] double taken_share() const;
  /// How many of `slots` slots on the workers can be busy at the same time: where workers hardly
  /// wait in stages, one for each core.
  [[nodiscard]] int working_slots(int slots) const;
  /// How many of a stage's slots can be busy at the same time.
  [[nodiscard]] int usable_slots(const Stage& stage) const;
};

Demands demands_of(const RunReport& report);

/// Returns the stage with this name, which must be there.
template <class D>
auto& stage_of(D& demands, const std::string& name) {
  return *std::find_if(demands.stages.begin(), demands.stages.end(),
                       [&](const Demands::Stage& s) { return s.name == name; });
}

/// Returns the lowest ceiling first. Among those less than 5 % apart the more general comes first:
/// cores before disk, workers and slots, since a lack of cores keeps these busy, too.
std::vector<Ceiling> ceilings_of(const Demands& demands);

}  // namespace melflow
