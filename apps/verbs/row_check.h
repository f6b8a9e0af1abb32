// Checks the rows of an output by the hashes in its index.
#pragma once

#include <cstddef>
#include <vector>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// Whether the rows of a file are what was written; also where that is not known, or there are none.
bool are_rows_right(const FeatureFile& file, const FeatureFile::Entry& entry);

struct CheckedRows {
  std::vector<std::size_t> wrong;      ///< files whose rows are not what was written
  std::size_t right = 0, unknown = 0;  ///< how many files' are; of how many there is no hash
};

/// Reads all rows. What cannot be read or unpacked is wrong.
CheckedRows check_rows(const FeatureFile& file);

}  // namespace melflow
