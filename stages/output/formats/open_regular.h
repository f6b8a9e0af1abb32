// Opening and reading files that a program is told to read: outputs of earlier runs.
#pragma once

#include <cstdint>
#include <string>

#include "stages/files/unique_fd.h"

namespace melflow {

/// Open to be read, and its size; waits for nobody. Throws RunError where it cannot be opened, or
/// is a folder, pipe or device.
UniqueFd open_regular(const std::string& path, std::uint64_t& bytes);
/// What is there of `bytes` at `at`. Throws RunError.
std::string read_at(int fd, std::uint64_t at, std::size_t bytes, const std::string& path);

}  // namespace melflow
