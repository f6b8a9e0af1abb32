// Chooses which source items go into one task of the graph. A task should take much longer than
// passing it from node to node, so several small files go together: as many as the plan says or,
// where that is left to the run, as take some 100 µs on a worker, which is what oneTBB advises, or
// longer with more than 25 files. Only the source's node calls it, one call at a time, except for
// work_ahead().
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "pipeline/run/made_ahead.h"
#include "pipeline/run/work.h"

namespace melflow {

class TaskGraph;

class TaskFiles {
 public:
  explicit TaskFiles(TaskGraph& graph);

  /// Makes the next items into `out`, `costs`, `cost` and `index` of `work`, which stays empty when
  /// there are no more.
  void make(Work& work);
  /// Makes later items ahead, on a worker that has just made a task of `files` items.
  void work_ahead(std::size_t files) { ahead_.work_ahead(files); }
  /// Whether all items have been made.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_.load(); }
  /// After the run: why fewer files went together than files_per_task says, as a warning; "" where
  /// that was kept.
  [[nodiscard]] std::string not_kept() const;

 private:
  void note_cut(std::size_t files, std::size_t cost);
  void skip_done();
  void measure();
  [[nodiscard]] std::size_t most() const;

  TaskGraph& graph_;
  MadeAhead ahead_;
  const std::size_t total_;
  const std::size_t done_before_;      // items whose records were closed before the start
  const UnitesSources* const unites_;  // where there are several sources
  const std::size_t fixed_;            // files a task; 0: as measured
  const double task_seconds_;          // what a task should take, where that is measured
  const std::size_t room_;             // for the memory of one task [bytes]
  std::size_t next_ = 0;
  std::size_t last_files_ = 0;  // of the last task
  std::atomic<bool> is_exhausted_{false};
  std::optional<MadeAhead::Made> next_item_;  // was made, and did not fit
  // Of tasks that had no room for as many files as they were to have: the most files, and the most
  // that one took [bytes].
  std::size_t most_cut_ = 0, dearest_ = 0;

  // What a file costs: so many seconds of a worker per unit of weight.
  std::size_t made_ = 0, weight_ = 0;
  std::size_t measure_at_ = 16;    // files made
  double seconds_per_weight_ = 0;  // 0: not known yet
};

}  // namespace melflow
