// A run that only plans its outputs, and its results.
#pragma once

#include <cstdio>
#include <memory>

#include "apps/report/plan_text.h"
#include "apps/verbs/watched_run.h"
#include "pipeline/run/runner.h"

namespace melflow {

struct DryRun {
  std::unique_ptr<Runner> runner;
  RunReport report;
  RowPlans plans;

  [[nodiscard]] const SourceStage& source() const {
    return *runner->plan().nodes.front().faces.source;
  }
  /// Why the run would fail; "": it would not, as far as its plans say.
  [[nodiscard]] std::string problem() const {
    return report.ending == Ending::failed ? report.error : refusals_of(plans);
  }
  /// Whether all outputs are planned: the run was not stopped.
  [[nodiscard]] bool is_whole() const {
    return report.ending != Ending::failed &&
           plans.size() == static_cast<std::size_t>(runner->plan().settings.sinks);
  }
  [[nodiscard]] int exit_code() const;
  /// Prints the warnings, the plans unless `out` is null, and the problem. Returns exit_code().
  int print(std::FILE* out) const;
};

/// Runs the plan, whose RunTask says what for. Throws RunError for a sink that would write.
DryRun dry_run(Plan plan, const Watch& watch);

}  // namespace melflow
