// Reads what npy_write made.
#pragma once

#include <cstdint>
#include <string>

#include "stages/output/formats/feature_data.h"

namespace melflow {

/// By its first bytes.
bool is_npy(const std::string& path);
/// All but the rows, from the files beside it. Throws RunError, saying what is wrong.
FeatureContents read_npy(const std::string& path, std::uint64_t file_bytes);

}  // namespace melflow
