// A run that makes a part of an output: the rows of some files that follow each other in a corpus.
// The parts are put together by merge_parts().
#pragma once

#include <optional>
#include <string>

#include "stages/output/rows/row_statistics.h"
#include "stages/output/run_journal.h"

namespace melflow {

/// Where the caller adds one to the services of a run, its sink writes these rows to `path`, as one
/// HDF5 file of contiguous rows, whatever its own format is; neither split into files nor
/// normalised.
struct OutputPart {
  std::string path;
  std::string before;           ///< where another program made it, which is gone; "" for none
  bool with_statistics = true;  ///< where the sink has statistics
  RunJournal::Facts
      row_facts;  ///< that decide the bytes of rows; with others the run does not begin; none: any
  std::int64_t rows = 0;           ///< filled in
  std::optional<ColumnSums> sums;  ///< likewise, where the output has statistics
};

}  // namespace melflow
