// Reads the files that hdf5_write makes.
#pragma once

#include <string>

#include "stages/output/formats/feature_data.h"

namespace melflow {

/// Reads everything but the rows. Throws RunError that names what is wrong with the file.
FeatureContents read_h5(const std::string& path);

}  // namespace melflow
