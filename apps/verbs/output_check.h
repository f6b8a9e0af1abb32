// Checks whether the files and parts of an output belong together, and its rows by the hashes in
// its index.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// The path of the output that `file` holds a split of: "out.h5" for "out.train.h5"; its own where
/// it holds all.
std::string path_of_all(const FeatureFile& file);
/// The files of that output that are there: those of splits, and what has none.
std::vector<std::string> files_of_all(const FeatureFile& file);

/// What does not fit together, a sentence each: the index with what was written, the rows with the
/// index (by the first and the last recording), the files of splits with each other. Nothing: it
/// does.
std::vector<std::string> misfits(const FeatureFile& file);

/// Whether the rows of a file are what was written; also where that is not known, or there are
/// none.
bool are_rows_right(const FeatureFile& file, const FeatureFile::Entry& entry);

struct CheckedRows {
  std::vector<std::size_t> wrong;      ///< files whose rows are not what was written
  std::size_t right = 0, unknown = 0;  ///< how many files' are; of how many there is no hash
};

/// Reads all rows. What cannot be read or unpacked is wrong.
CheckedRows check_rows(const FeatureFile& file);

}  // namespace melflow
