// What runs a stage that does not run on the workers: threads of its own where process() waits for a
// device, or the engine that has its items under way. Behind an async_node. What waits for the stage
// is in a queue here, the oldest source item first, and is taken from it by these threads when it
// is let in.
#pragma once

#include <memory>

#include "pipeline/work.h"

namespace melflow {

class GraphNode;

class OwnThreads {
 public:
  /// Null where the stage runs on the workers.
  static std::unique_ptr<OwnThreads> make(GraphNode& node);
  virtual ~OwnThreads() = default;

  /// Makes the threads, or as many as there are to be had; throws RunError where there is none.
  virtual void hire() = 0;
  /// Ends them; nothing may be under way.
  virtual void join() = 0;
  /// How many there are, where fewer than wanted mean fewer items at once; else 0.
  [[nodiscard]] virtual int count() const { return 0; }

  /// Into the queue.
  virtual void put(Work* work) = 0;
  /// So many of those in the queue may be taken. The graph does not end before the node has been told
  /// for each of them that it is let go.
  virtual void let_in(int more) = 0;
};

}  // namespace melflow
