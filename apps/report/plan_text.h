// Describes the plans of outputs, as a dry run returns them, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/report/report.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/output/row_plan.h"

namespace melflow {

using RowPlans = std::vector<RowPlan>;

/// Calls `tell(file, found)` for each file that would be computed for an output, in order.
template <class Tell>
void each_computed(const RowPlan& plan, const Tell& tell) {
  for (const RowPlan::Section& section : plan.sections)
    for (const PlannedRange& range : section.ranges)
      for (std::size_t i = range.first; range.from == PlannedRange::From::graph && i < range.end;
           ++i)
        tell(i, range.found);
}

/// Returns the text, which names at most `limit` of the files that would be computed for an output,
/// with reasons. `source`: the source of the run.
std::string plan_text(const RowPlans& plans, const SourceStage& source, std::size_t limit);
/// Returns the document. With several outputs, each is an element of "outputs".
nlohmann::ordered_json plan_json(const RowPlans& plans, const SourceStage& source,
                                 const RunReport& report, int exit_code);
/// Returns why the plans would not be carried out, a line per output that refuses; "" if none does.
std::string refusals_of(const RowPlans& plans);

}  // namespace melflow
