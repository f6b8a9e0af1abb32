// Runs a stage that does not run on the workers: on threads of its own, where process() waits for a
// device, or by its engine. It belongs to an async_node, which hands it work that may begin.
#pragma once

#include <memory>

#include "pipeline/run/work.h"

namespace melflow {

class GraphNode;

/// Threads: start_threads() and join() from the first thread of the run; put() from any, and it
/// does not wait for the stage; count() and cpu_seconds() from any.
/// Lifetime: as its GraphNode, whose begin(), run() and finish() its threads call.
class AsyncDriver {
 public:
  /// Null where the stage runs on the workers.
  static std::unique_ptr<AsyncDriver> make(GraphNode& node);
  virtual ~AsyncDriver() = default;

  /// Starts the threads, or as many as the system allows; throws RunError when it allows none.
  virtual void start_threads() = 0;
  /// Ends the threads; no work may be in flight.
  virtual void join() = 0;
  /// The number of threads where it is below what was wanted and so limits the items at once; else
  /// 0.
  [[nodiscard]] virtual int count() const { return 0; }

  /// The processor time of the threads so far [s].
  [[nodiscard]] virtual double cpu_seconds() = 0;

  /// Hands over work that may begin. GraphNode::release_wait() is called when the driver is done
  /// with it.
  virtual void put(Work* work) = 0;
};

}  // namespace melflow
