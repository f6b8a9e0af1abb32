// Finds files that come with melflow, such as its pipelines.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace melflow {

/// Returns a file's possible paths, in search order: `installed` below share/melflow of the
/// installed library, then `source` in the source tree around the library's build folder. A program
/// with melflow inside counts as the library.
std::vector<std::filesystem::path> shipped_places(const std::string& installed,
                                                  const std::string& source);

/// Returns the first of these paths that exists. Throws RunError when none does.
std::filesystem::path shipped_file(const std::string& installed, const std::string& source);

}  // namespace melflow
