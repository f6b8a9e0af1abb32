// The task of a run: the one service by which its caller tells source and sinks what to do beside
// making outputs from a corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/stage/run_context.h"

namespace melflow {

template <class Batch>
class BatchQueue;
struct SampleBatch;
class BufferPool;
struct CorpusSurvey;
struct FrozenCorpus;
class OutputPlanner;
struct RowPlan;
class WholeFiles;

/// How a sink treats the output of an earlier run. Other than with `none`, an existing output is
/// replaced without `overwrite`, also where RunTask::planner is given, and a pipeline that cannot
/// be updated refuses (RefusesUpdate).
enum class Update {
  none,    ///< makes a new output
  append,  ///< rows that are still valid stay in place, new ones are appended
  compact  ///< makes a new file in the order of the source, copying rows that are still valid
};

/// A file of an earlier output, as it was listed, and the name of its split, "" for none. Both stay
/// valid until the sinks start.
struct EarlierFile {
  std::string_view path, split;
};

/// Whether to resume an interrupted run.
struct Resume {
  enum class When {
    automatic,  ///< resume where possible, else start from the beginning
    never,      ///< start from the beginning, and remove what an interrupted run left
    required    ///< fail the run where there is nothing to resume
  };
  When when = When::automatic;
  std::function<void(const std::string&)> tell = {};  ///< reports what was found; may be empty
  /// Ends the program, saying that a decoder hangs; where empty, a hanging decoder is left alone.
  std::function<void(const std::string&)> leave = {};
  /// The path where another program, now ended, began the same output; "" for none. Its journal
  /// there says which recordings it was decoding.
  std::string before = {};
};

/// A training program's parameters for a pass over the corpus (RunTask::delivery).
struct BatchDelivery {
  std::shared_ptr<BatchQueue<SampleBatch>> queue;
  /// Tells the program, before its next batch, what the run warns of as a whole.
  std::function<void(std::string)> warn = {};
  /// The memory of batches, which one pass leaves to the next. Null: each pass has its own.
  std::shared_ptr<BufferPool> pool = {};
  std::uint64_t epoch = 0;
  std::uint64_t skip = 0;  ///< samples delivered before the pass was interrupted
  std::string split = {};  ///< the split whose recordings it takes; "": all
  /// The program takes every `ranks`-th of these recordings, from number `rank` on; `ranks`
  /// programs share them.
  std::size_t rank = 0, ranks = 1;
};

struct RunTask {
  // The corpus.
  std::shared_ptr<FrozenCorpus> corpus = {};  ///< null: the source lists it
  std::optional<std::uint64_t> shuffle = {};  ///< the seed with which its recordings are shuffled
  /// Where not null, files that are still being written wait for a later run: new ones are not
  /// listed, and what an output has of the others stays.
  std::shared_ptr<WholeFiles> whole = {};
  std::shared_ptr<CorpusSurvey> survey = {};  ///< filled in by a dry run that lists the corpus

  // The outputs.
  Update update = Update::none;
  /// Where an update is a repair: the damaged entries, ascending, of each output. The rows of every
  /// other file that was ok are kept, even if the recording has changed or is gone.
  std::optional<std::map<std::string, std::vector<std::size_t>>> damaged = {};
  /// Makes the planner of each sink, which decides which rows it takes from existing files; empty:
  /// that of an update, or where `update` is none one that computes all rows.
  std::function<std::unique_ptr<OutputPlanner>()> planner = {};
  /// Filled in by a dry run that plans the outputs; with fewer than all where it was stopped.
  std::shared_ptr<std::vector<RowPlan>> plans = {};
  /// Throws RunError for a file of an output, with links followed, that may not be written; empty:
  /// all may be. Called before anything is changed.
  std::function<void(const std::string& file)> check_place = {};
  std::shared_ptr<BatchDelivery> delivery = {};  ///< where the stage `batches` delivers, or null
  Resume resume = {};

  /// For each output that is updated: the files that it has. Filled in by the sinks before the
  /// source starts.
  std::vector<std::vector<EarlierFile>> earlier = {};

  /// In a dry run nothing is read or written: the sinks close every file as not run.
  [[nodiscard]] bool is_dry() const { return survey != nullptr || plans != nullptr; }
};

/// To be called before the run. Returns the task, whose pointers tell what the run found out.
inline std::shared_ptr<RunTask> set_task(RunServices& services, RunTask task) {
  auto out = std::make_shared<RunTask>(std::move(task));
  services.add(out);
  return out;
}
/// The task of the run; one with its defaults where the caller set none.
inline RunTask& task_of(const RunContext& run) { return *run.services.find_or_make<RunTask>(); }
inline Update update_of(const RunContext& run) { return task_of(run).update; }

/// A stage whose pipeline may be one that cannot be updated.
class RefusesUpdate {
 public:
  /// Why it cannot, and what to do instead; "" where it can.
  [[nodiscard]] virtual std::string why_no_update() const = 0;

 protected:
  ~RefusesUpdate() = default;
  /// Throws RunError where the run is an update that cannot be.
  void check_update(const RunContext& run) const {
    if (update_of(run) == Update::none) return;
    if (const std::string why = why_no_update(); !why.empty()) throw RunError(why);
  }
};

}  // namespace melflow
