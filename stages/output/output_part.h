// A run that makes a part of an output: the rows of consecutive files of a corpus. MergePlanner
// assembles the parts.
#pragma once

#include <optional>
#include <string>

#include "stages/output/rows/row_statistics.h"
#include "stages/output/run_journal.h"

namespace melflow {

/// The sink of a run with one (RunTask::part) writes the rows to `path` as one HDF5 file of
/// contiguous rows, whatever its own format is; neither split into files nor normalised.
struct OutputPart {
  std::string path;
  std::string before;           ///< the path at which a program that is gone began it; "" for none
  bool with_statistics = true;  ///< where the sink has statistics
  RunJournal::Facts
      row_facts;  ///< required facts that decide the bytes of rows; others end the run; none: any
  std::int64_t rows = 0;           ///< filled in by the run
  std::optional<ColumnSums> sums;  ///< filled in where the output has statistics
};

}  // namespace melflow
