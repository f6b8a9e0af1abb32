// Reads the files that npy_write makes.
#pragma once

#include <cstdint>
#include <string>

#include "stages/output/formats/feature_data.h"

namespace melflow {

/// Whether the first bytes of the file are those of a .npy file.
bool is_npy(const std::string& path);
/// Reads everything but the rows, from the files beside `path`. `file_bytes`: size of the file of
/// rows. Throws RunError that names what is wrong.
FeatureContents read_npy(const std::string& path, std::uint64_t file_bytes);

}  // namespace melflow
