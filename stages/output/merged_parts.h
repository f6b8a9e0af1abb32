// Assembles an output from parts that other runs have made (output_part.h).
//
// For every file of the corpus the sink gets what a resumed run would find: the file's outcome, and
// its rows at their position. The sink then continues as in any run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_writer.h"
#include "stages/output/rows/row_statistics.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

/// A complete part: the rows of files [first, end) of the corpus.
struct FinishedPart {
  std::string path;
  std::size_t first = 0, end = 0;
  std::uint64_t bytes = 0, hash = 0;  ///< size and XXH3 of the whole file at `path`
  std::optional<ColumnSums> sums;     ///< where the output has statistics
};

/// Where the caller adds one to the services of a run, its sink takes the rows of all files from
/// these parts, which must follow each other and cover the corpus; nothing is computed.
struct MergedParts {
  std::vector<FinishedPart> parts;
};

struct MergeInto {
  RunContext& run;
  RowWriter& writer;
  SinkStatistics& statistics;
  const OutputSections& sections;
  const std::vector<std::unique_ptr<RowPartFile>>& files;  ///< by section
};
/// Throws RunError naming a part that differs from what its run wrote, or is of other files. When
/// the run is being stopped, the remaining files are left open.
void merge_parts(const MergedParts& from, const MergeInto& into);

/// XXH3 (64 bits) of a file's bytes. Throws RunError when it cannot be read.
std::uint64_t hash_of_file(int fd, const std::string& path);

}  // namespace melflow
