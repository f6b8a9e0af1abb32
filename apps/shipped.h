// Files that come with melflow: pipelines, golden vectors, the script that asks Python's libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace melflow {

/// Where to look, in order: `installed` below share/melflow of the installed program, then `source`
/// in the source tree whose build folder the program lies in.
std::vector<std::filesystem::path> shipped_places(const std::string& installed,
                                                  const std::string& source);

/// The first of those places where there is a file. Throws RunError when there is none.
std::filesystem::path shipped_file(const std::string& installed, const std::string& source);

}  // namespace melflow
