// Carries out the part of a plan that needs no computing: accounts for files whose rows exist, and
// copies rows before the graph begins where the plan says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_writer.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

/// The objects that know of every file of a run.
struct Accounts {
  RunContext& run;
  SinkLedger& ledger;
  RowWriter& writer;
  SinkStatistics& statistics;
};
struct KeptFiles {
  std::size_t files = 0;
  std::int64_t rows = 0;
};
/// Plans to compute those files that a route sent to another output, where that lacks them: they
/// pass the route again. To be called when all outputs are planned.
void pass_routes_again(RowPlan& plan, const RunContext& run);

/// Closes in the ledger the files whose rows all sinks of the run have; the other files are
/// computed again for the sinks that lack them. Rows that are to be copied are copied at their
/// turn, by the writer. Forgets the givers of sections that stay in place.
KeptFiles keep_planned(RowPlan& plan, const Accounts& to);

/// The same for a plan with RowPlan::copies_first, and copies all rows, on the run's threads.
/// Throws RunError. When the run is being stopped, the remaining files are left open.
void copy_first(RowPlan& plan, const Accounts& to,
                const std::vector<std::unique_ptr<RowPartFile>>& files);

}  // namespace melflow
