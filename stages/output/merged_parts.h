// Puts an output together of parts that other runs have made (output_part.h).
//
// For every file of the corpus the sink gets what a run that goes on would find of it: what became
// of it, and its rows at their place. What is then made of that is up to the sink, as in any run.
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
  std::uint64_t bytes = 0, hash = 0;  ///< of the file at `path`, all of it: XXH3
  std::optional<ColumnSums> sums;     ///< where the output has statistics
};

/// Where the caller adds one to the services of a run, its sink takes the rows of all files from
/// these parts, which follow each other and are the whole corpus; nothing is computed.
struct MergedParts {
  std::vector<FinishedPart> parts;
};

struct MergeInto {
  RunContext& run;
  RowWriter& writer;
  SinkStatistics& statistics;
  const OutputSections& sections;
  const std::vector<std::unique_ptr<RowPartFile>>& files;  ///< of each section
};
/// Throws RunError that names a part which is not what its run has written, or is of other files.
/// When the run is being stopped, files are left open.
void merge_parts(const MergedParts& from, const MergeInto& into);

/// XXH3 (64 bits) of a file's bytes. Throws RunError when it cannot be read.
std::uint64_t hash_of_file(int fd, const std::string& path);

}  // namespace melflow
