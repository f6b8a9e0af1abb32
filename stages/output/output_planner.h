// Decides, for one sink, which rows of its output come from existing files and which are computed.
// A mode of running, such as an update or a merge, is a planner; RowSink carries out what it plans.
// The base plans a run that computes all rows.
//
// Threads: the run's own, before the first row. Errors: RunError from any call ends the run, and no
// file has been changed then. Lifetime: until it has planned.
#pragma once

#include <string>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/stage.h"
#include "stages/items.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_sink_options.h"

namespace melflow {

/// The output to be planned.
struct PlannedOutput {
  RunContext& run;
  const Stage& sink;
  const RowSinkOptions& target;
  const FeatureInfo& info;
  bool is_routed_by_content = false;  ///< by every upstream route
  /// The byte at which rows must begin to be extended in place; -1: they cannot be.
  std::int64_t extensible_at = -1;
};

class OutputPlanner {
 public:
  OutputPlanner() = default;
  virtual ~OutputPlanner() = default;
  OutputPlanner(const OutputPlanner&) = delete;
  OutputPlanner& operator=(const OutputPlanner&) = delete;

  /// Opens the files that it plans with, before the source lists the corpus; adds what the source
  /// has to know of them to RunTask::earlier. Throws RunError.
  virtual void look(const PlannedOutput& /*output*/) {}
  /// Plans; called when all stages have started. Changes no file. Throws RunError where the run
  /// must not go on.
  [[nodiscard]] virtual RowPlan plan(const PlannedOutput& /*output*/,
                                     const OutputSections& sections) {
    RowPlan plan;
    for (std::size_t s = 0; s < sections.size(); ++s) {
      plan.sections.emplace_back();
      if (sections.first(s) < sections.end(s))
        plan.sections[s].ranges.push_back({sections.first(s), sections.end(s)});
    }
    return plan;
  }
  /// Advice for a message that the output exists and must not be replaced; "": the usual advice.
  [[nodiscard]] virtual std::string advice() const { return {}; }
};

}  // namespace melflow
