// Finds out how much memory this process may still take, also by the control groups that it is in,
// as the kernel and systemd mount them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// The memory [bytes] that the system has available, limited by what the control groups (v1 or v2)
/// of this process leave; the page cache counts as free. `root`: the folder that contains proc and
/// sys.
std::uint64_t available_memory(const std::string& root = "");

struct ControlGroup {
  std::string folder;  ///< with a slash at its end
  bool is_v2 = true;   ///< of version 2, of which the files have other names than of version 1
};

/// Those whose limits of `controller` ("cpu", "memory") hold for this process: its own and all
/// above it, of either version. `root`: of the file system.
std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller);

}  // namespace melflow
