// Finds files that come with melflow: pipelines, golden vectors, the script that runs Python's
// libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace melflow {

/// Sets the folder to be searched last, "" for none; before any other call.
void set_shared_files(const std::string& folder);

/// The places of a file, in the order in which they are searched: `installed` below share/melflow
/// of the installed program, then `source` in the source tree in whose build folder the program is,
/// then `installed` below the folder of set_shared_files().
std::vector<std::filesystem::path> shipped_places(const std::string& installed,
                                                  const std::string& source);

/// The first of those places that exists. Throws RunError when none does.
std::filesystem::path shipped_file(const std::string& installed, const std::string& source);

}  // namespace melflow
