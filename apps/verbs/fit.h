// Checks whether the files and parts of an output belong together.
#pragma once

#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// The path of the output that `file` holds a split of: "out.h5" for "out.train.h5"; its own where it
/// holds all.
std::string path_of_all(const FeatureFile& file);
/// The files of that output that are there: those of splits, and what has none.
std::vector<std::string> files_of_all(const FeatureFile& file);

/// What does not fit together, a sentence each: the index with what was written, the rows with the index
/// (by the first and the last recording), the files of splits with each other. Nothing: it does.
std::vector<std::string> misfits(const FeatureFile& file);

}  // namespace melflow
