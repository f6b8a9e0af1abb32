// Finds out how much memory this process may still take, given its control groups as the kernel and
// systemd mount them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// Returns the memory [bytes] that the system and the control groups (v1 or v2) of this process
/// still allow it to take; the page cache counts as free. `root`: the folder that contains proc and
/// sys.
std::uint64_t available_memory(const std::string& root = "");

/// Returns how many of the `available` bytes, and of those that it `holds`, a cache may keep: a
/// quarter stays free for others, but no more than 512 MiB.
std::uint64_t storable_memory(std::uint64_t available, std::uint64_t holds);

/// The most memory that this process can have [bytes], whatever others take.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string file;  ///< where its control group says so; "": it is all that the machine has
};
MemoryLimit memory_limit(const std::string& root = "");

struct ControlGroup {
  std::string folder;  ///< with a slash at its end
  bool is_v2 = true;   ///< version 1 and version 2 name their files differently
};

/// Returns the groups whose limits of `controller` ("cpu", "memory") apply to this process: its own
/// and all above it, of either version. `root`: the folder that contains proc and sys.
std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller);

}  // namespace melflow
