// Finds files that come with melflow: pipelines, golden vectors, the script that runs Python's
// libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace melflow {

/// The places of a file, in the order in which they are searched: `installed` below share/melflow
/// of the installed library, then `source` in the source tree in whose build folder the library is.
/// A program that has melflow inside stands for the library.
std::vector<std::filesystem::path> shipped_places(const std::string& installed,
                                                  const std::string& source);

/// The first of those places that exists. Throws RunError when none does.
std::filesystem::path shipped_file(const std::string& installed, const std::string& source);

}  // namespace melflow
