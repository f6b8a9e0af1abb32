// Runs a stage that does not run on the workers: on dedicated threads, where process() waits for a
// device, or by its engine. It belongs to an async_node. Work for the stage waits in a queue here,
// the oldest source item first, from which these threads take what is admitted.
#pragma once

#include <memory>

#include "pipeline/run/work.h"

namespace melflow {

class GraphNode;

class OwnThreads {
 public:
  /// Null where the stage runs on the workers.
  static std::unique_ptr<OwnThreads> make(GraphNode& node);
  virtual ~OwnThreads() = default;

  /// Starts the threads, or as many as the system allows; throws RunError when it allows none.
  virtual void start_threads() = 0;
  /// Ends the threads; no work may be under way.
  virtual void join() = 0;
  /// The number of threads where it is below what was wanted and so limits the items at once; else
  /// 0.
  [[nodiscard]] virtual int count() const { return 0; }

  /// The processor time of the threads so far [s].
  [[nodiscard]] virtual double cpu_seconds() = 0;

  /// Puts work into the queue.
  virtual void put(Work* work) = 0;
  /// Allows so many more pieces of work to be taken from the queue. The graph does not end before
  /// each of them is done.
  virtual void let_in(int more) = 0;
};

}  // namespace melflow
