// Plans an output whose rows are all copied from parts that other runs have made (part_sink.h).
//
// Threads: plan() and advice() by the run's own; the parts are opened and copied on the run's
// threads, each part by one, and HDF5 is used under hdf5_mutex(). Errors: RunError that names the
// part and says how to make it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stages/output/output_planner.h"

namespace melflow {

/// A complete part: the rows of files [first, end) of the corpus.
struct FinishedPart {
  std::string path;
  std::size_t first = 0, end = 0;
  std::uint64_t bytes = 0, hash = 0;  ///< size and content_hash() of the whole file at `path`
  std::optional<ColumnSums> sums;     ///< where the output has statistics
};

class MergePlanner final : public OutputPlanner {
 public:
  /// The parts must follow each other and cover the corpus.
  explicit MergePlanner(std::vector<FinishedPart> parts) : parts_(std::move(parts)) {}
  /// The parts are opened only when their rows are copied. That throws RunError naming a part that
  /// differs from what its run wrote, or is of other files.
  [[nodiscard]] RowPlan plan(const PlannedOutput& output, const OutputSections& sections) override;
  [[nodiscard]] std::string advice() const override;

 private:
  std::vector<FinishedPart> parts_;
};

}  // namespace melflow
