// Checks whether the files and parts of an output belong together, and checks its rows against the
// hashes in its index.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// Returns the path of the output to which `file` belongs: "out.h5" for the split file
/// "out.train.h5"; its own path where it holds all rows.
std::string path_of_all(const FeatureFile& file);
/// Returns the existing files of that output: those of splits, and the one without a split.
std::vector<std::string> files_of_all(const FeatureFile& file);

/// Describes inconsistencies, one sentence each: between the index and the file's contents, between
/// rows and index (by the first and last recording, unless `with_rows` is false, as where all are
/// checked), and between the files of splits. Empty: there are none.
std::vector<std::string> misfits(const FeatureFile& file, bool with_rows = true);

/// Whether the rows of a file match their hash; true also where there is no hash, or no rows.
bool are_rows_right(const FeatureFile& file, const FeatureFile::Entry& entry);

struct CheckedRows {
  std::vector<std::size_t> wrong;      ///< files whose rows do not match their hash
  std::size_t right = 0, unknown = 0;  ///< numbers of files that match, and that have no hash
};

/// Reads all rows. Rows that cannot be read or unpacked count as wrong.
CheckedRows check_rows(const FeatureFile& file);

}  // namespace melflow
