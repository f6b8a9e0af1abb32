// Carries out the part of a plan that needs no computing: accounts for files whose rows exist, and
// copies rows before the graph begins where the plan says so.
//
// Threads: the calls come from the run's own thread before the first row; copy_first() uses the
// run's threads and lets one at a time into the accounts, in the order of the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_writer.h"
#include "stages/output/run_journal.h"
#include "stages/output/section_file.h"
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

  void add(std::int64_t rows_of_file) {
    ++files;
    rows += rows_of_file;
  }
};

/// A file that is done before the run computes anything: what the journal of an interrupted run
/// says of it, or a file that has its rows.
struct Done : RunJournal::File {
  enum class Rows : std::uint8_t {
    written,  ///< in the work file, after those of the previous file
    copied,   ///< not in the work file yet; the writer copies them at their turn
    stay      ///< in the output that is extended, from `offset` on
  };
  Rows where = Rows::written;
  std::int64_t offset = 0;
  bool is_summed = false;  ///< the statistics have its rows
};
/// Enters a file that is done into all accounts: its rows and their hash, the statistics, what the
/// source knows of it, and its outcome in the sink and, where no sink of the run needs the file
/// again (`in_run`), in the run.
void account(std::size_t file, const Done& done, const Accounts& to);

/// Plans to compute files that a route sent to another output which lacks them now: they have to
/// pass the route again. To be called when all outputs are planned.
void pass_routes_again(RowPlan& plan, const RunContext& run);

/// Closes in the ledger the files whose rows all sinks of the run have; the other files are
/// computed again for the sinks that lack them. Rows that are to be copied are copied at their
/// turn, by the writer. Forgets the givers of sections that stay in place.
KeptFiles keep_planned(RowPlan& plan, const Accounts& to);

/// The same for a plan with RowPlan::copies_first, and copies all rows, on the run's threads.
/// Throws RunError. When the run is being stopped, the remaining files are left open.
void copy_first(RowPlan& plan, const Accounts& to, const std::vector<SectionFile>& files);

}  // namespace melflow
