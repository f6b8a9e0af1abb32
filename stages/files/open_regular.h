// Opens and reads files that the user names, such as outputs of earlier runs.
#pragma once

#include <cstdint>
#include <string>

#include "stages/files/unique_fd.h"

namespace melflow {

/// Opens a file for reading without ever waiting; `bytes` gets its size. Throws RunError when it
/// cannot be opened, or is a folder, pipe or device.
UniqueFd open_regular(const std::string& path, std::uint64_t& bytes);
/// Reads `bytes` bytes from `at` on, fewer at the end of the file. Throws RunError.
std::string read_at(int fd, std::uint64_t at, std::size_t bytes, const std::string& path);

}  // namespace melflow
