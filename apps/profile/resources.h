// The cost of a file in each stage and resource of the machine, and the files per second that each
// could serve.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/report.h"

namespace melflow {

/// What can hold a run back. The first four are resources with a ceiling; the others lose time.
enum class Cause {
  cores,      ///< the processor
  disk,       ///< reading waits for it
  workers,    ///< threads of the run, all of them in stages
  slots,      ///< a stage's concurrency
  memory,     ///< files wait for the budget
  queue,      ///< a queue alternately full and empty
  few_files,  ///< fewer files than could be done at once
  ending,     ///< the last files: slots have nothing more to do
  beginning,  ///< until the first rows were through
  listing,    ///< before the stages: finding files, opening outputs
  loading,    ///< before the stages: loading the audio
  closing,    ///< after the stages: closing and checking outputs
  program,    ///< a training program that takes batches
  uneven,     ///< nothing for long: the stages waited for each other
};
const char* to_text(Cause cause);

/// From this share of a worker's time in stages on it is a core at work: more workers than cores
/// then help no more.
constexpr double kAllWorking = 0.8;

/// The most files a second that a resource can serve, while the stages work.
struct Ceiling {
  Cause cause = Cause::slots;
  std::string node;  ///< of slots and disk
  double files_per_second = 0;
  double used = 0;  ///< share of it that was used, 0 to 1 and a little
};

/// Another value of an option that leaves all rows as they are, and what a run with it would take.
struct CheaperValue {
  std::string option, value;  ///< "level", "1"
  double saves = 0;           ///< share of the stage's time
  double size = 1;            ///< of the output, times as large
};

/// What a file asks for, on average over all files [s], and what there is to serve it.
struct Demands {
  struct Stage {
    std::string name;
    ConcurrencyOption option;
    int slots = 1;
    bool on_workers = true;
    double busy = 0;  ///< of a slot
    double cpu = 0;   ///< of a core
    double disk = 0;  ///< of a slot, waiting for the disk
    std::optional<CheaperValue> cheaper;
  };
  std::vector<Stage> stages;
  int workers = 1, cores = 1;
  int files = 0;
  double core_wait = 0;         ///< threads that were ready without a core [s]
  double between = 0;           ///< of a core, to pass a file from stage to stage
  double files_per_second = 0;  ///< reached while the stages worked

  /// Of all that runs on the workers, and between stages.
  [[nodiscard]] double worker_seconds() const;
  [[nodiscard]] double core_seconds() const;  ///< of all stages, and between them
  /// How much of the workers' time in stages a core worked, or they waited for one; 0 to 1.
  [[nodiscard]] double workers_processor_share() const;
  /// Of the time in which its threads computed or waited for a core, the share that they waited
  /// because other programs had it; 0 with more workers than cores, which take them from each
  /// other.
  [[nodiscard]] double taken_share() const;
  /// Of so many slots on the workers, those that can be at work at the same time: where workers
  /// hardly wait in stages, one for each core.
  [[nodiscard]] int working_slots(int slots) const;
  /// How many of a stage's slots can be at work at the same time.
  [[nodiscard]] int usable_slots(const Stage& stage) const;
};

Demands demands_of(const RunReport& report);

/// The lowest first. Of those less than 5 % apart the more general one: cores before disk, workers
/// and slots, since what is held back by cores keeps slots and workers busy, too.
std::vector<Ceiling> ceilings_of(const Demands& demands);

}  // namespace melflow
