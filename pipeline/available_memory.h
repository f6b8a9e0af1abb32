// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace melflow {

/// What the system has available, and no more than the control groups (v1 or v2) of this process
/// leave; memory of the page cache counts as free [bytes]. `root`: where /proc and /sys are looked
/// for.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace melflow
