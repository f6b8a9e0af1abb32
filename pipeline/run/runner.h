// Runs a checked plan within its bounds on workers, queues and memory.
#pragma once

#include <functional>
#include <memory>

#include "pipeline/plan/plan.h"
#include "pipeline/report/observer.h"
#include "pipeline/report/report.h"
#include "pipeline/report/visit_log.h"

namespace melflow {

struct Progress {
  bool is_filling = false;  ///< whether a filling pass is running, to which the other members refer
  Ledger::Counts counts;
  std::size_t rows = 0;   ///< rows that the sinks have taken
  std::size_t bytes = 0;  ///< bytes read so far: given by the nodes behind the source
  double seconds = 0;
};

/// How far a run is, for a series over time.
struct RunSample {
  double seconds = 0;                               ///< since the run began
  std::size_t files = 0, rows = 0, bytes_read = 0;  ///< so far; files: records that are closed
  std::size_t reserved = 0;                         ///< of the memory budget [bytes]
  struct Node {
    std::size_t waiting = 0;  ///< items in the queue before it
    StageTime time;           ///< so far
  };
  std::vector<Node> nodes;  ///< in the order of the plan; none where no graph runs
};

/// One run of one plan. Not reusable: build a new plan for a new run.
/// Threads: run() once; where others say so, from any thread, also before and after run().
/// Locks: stop(), progress() and sample() take graph_mutex_, the outermost lock of a run
/// (task_graph.h), and so are not called by a stage that holds one.
class Runner {
 public:
  /// `observer`, unless it is null, is called while nodes work, and `visits` gets what they did;
  /// both must outlive the run.
  explicit Runner(Plan plan, RunObserver* observer = nullptr, VisitLog* visits = nullptr);
  ~Runner();

  /// Runs the plan and waits for the end. Throws RunError when the run could not start; a run that
  /// started always gives a report, a failed one with `ending` failed and `error` set.
  RunReport run();

  /// Stops the run: no new items are begun, those under way are finished. From any thread, but not
  /// from a signal handler.
  void stop();

  /// The present progress. From any thread, during the run.
  [[nodiscard]] Progress progress() const;
  /// Likewise of every node.
  [[nodiscard]] RunSample sample() const;

  /// All source items that are not ok, or ok with a warning, in order; after the run.
  [[nodiscard]] Remarks remarks() const;
  [[nodiscard]] const Plan& plan() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace melflow
