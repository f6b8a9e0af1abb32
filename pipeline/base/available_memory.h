// Finds out how much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace melflow {

/// The memory [bytes] that the system has available, limited by what the control groups (v1 or v2)
/// of this process leave; the page cache counts as free. `root`: the folder that contains proc and
/// sys.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace melflow
