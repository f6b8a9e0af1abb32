// Reads what hdf5_write made.
#pragma once

#include <string>

#include "stages/output/formats/feature_data.h"

namespace melflow {

/// All but the rows. Throws RunError, saying what is wrong with the file.
FeatureContents read_h5(const std::string& path);

}  // namespace melflow
