// done/0007.json: that a part is complete, and what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/job/job.h"
#include "stages/output/rows/row_statistics.h"

namespace melflow {

struct PartRecord {
  std::size_t ok = 0, skipped = 0, failed = 0;  ///< files
  std::int64_t rows = 0;
  std::uint64_t bytes = 0, hash = 0;     ///< of parts/0007.h5: XXH3 of all of it
  std::optional<ColumnSums::Text> sums;  ///< where the output has statistics
  std::string worker;
  double seconds = 0;

  /// Nothing where there is none. Throws RunError when it is damaged, or of another plan.
  static std::optional<PartRecord> read(const Job& job, std::size_t part);
  /// Throws RunError.
  void write(const Job& job, std::size_t part) const;
};

}  // namespace melflow
