// Error text for missing paths.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// ". Did you mean 'clips'?": the path of the entry of its folder that has the nearest name; "" where
/// none is near, or the folder cannot be listed.
std::string near_path(const std::string& path);

/// Why there is no file: "there is no such file. Did you mean 'out.h5'?"; or the files of its folder
/// that end as one of `endings` does; or the folder that is missing.
std::string no_such_file(const std::string& path, const std::vector<std::string>& endings);

}  // namespace melflow
