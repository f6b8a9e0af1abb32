// Which source items go into one task of the graph. A task should be worth what handing it from node
// to node costs, so several small files go together, as many as the plan says or, where that is left
// to the run, as take some 100 µs on a worker. Only the source's node asks, one call at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "pipeline/work.h"

namespace melflow {

class TaskGraph;

class TaskFiles {
 public:
  explicit TaskFiles(TaskGraph& graph);

  /// Makes the next ones: `out`, `costs`, `cost` and `index` of `work`, which stays empty when there
  /// are no more.
  void make(Work& work);
  /// All of them have been made.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_.load(); }

 private:
  void skip_done();

  TaskGraph& graph_;
  AnyStage& source_;
  const std::size_t total_;
  const bool some_are_done_;  // their lines were closed before the start
  std::size_t next_ = 0;
  std::atomic<bool> is_exhausted_{false};
};

}  // namespace melflow
