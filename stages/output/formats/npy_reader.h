// Reads the files that npy_write makes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "stages/output/formats/feature_data.h"

namespace melflow {

/// Whether the first bytes of the file are those of a .npy file.
bool is_npy(const std::string& path);
/// Reads everything but the rows, from the files beside `path`. `file_bytes`: size of the file of
/// rows. Throws RunError that names what is wrong.
FeatureContents read_npy(const std::string& path, std::uint64_t file_bytes);
/// Reads the same index beside rows of another format, at a path that ends in `ending` (or that and
/// .part). `open` checks the rows against it and opens them. Throws RunError.
FeatureContents read_beside(
    const std::string& path, const std::string& ending,
    const std::function<std::unique_ptr<const FeatureRows>(FeatureData&)>& open);

}  // namespace melflow
