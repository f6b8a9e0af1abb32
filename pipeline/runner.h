// Runs a checked plan, within its bounds of workers, queues and memory.
#pragma once

#include <functional>
#include <memory>

#include "pipeline/observer.h"
#include "pipeline/plan.h"
#include "pipeline/report.h"

namespace melflow {

struct Progress {
  bool is_filling = false;  ///< a filling pass is under way; the rest is about that
  Ledger::Counts counts;
  std::size_t rows = 0;   ///< taken by the sinks
  std::size_t bytes = 0;  ///< read so far: given by the nodes behind the source
  double seconds = 0;
};

/// One run of one plan. Not reusable: build a new plan for a new run.
class Runner {
 public:
  /// `observer`, unless it is null, is told what the nodes do; it has to outlive the run.
  explicit Runner(Plan plan, RunObserver* observer = nullptr);
  ~Runner();

  /// Blocks until the run is over. Throws RunError when it could not start at all; a run that
  /// started always gives a report, a failed one with `ending` failed and `error` set.
  RunReport run();

  /// From any thread (not from a signal handler): take nothing new, finish what is under way.
  void stop();

  /// From any thread, during the run.
  [[nodiscard]] Progress progress() const;

  /// After the run.
  [[nodiscard]] std::vector<Remark> remarks() const;
  [[nodiscard]] const Plan& plan() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace melflow
