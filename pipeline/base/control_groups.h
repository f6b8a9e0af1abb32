// The control groups that this process is in, as the kernel and systemd mount them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

struct ControlGroup {
  std::string folder;  ///< with a slash at its end
  bool is_v2 = true;   ///< of version 2, of which the files have other names than of version 1
};

/// Those whose limits of `controller` ("cpu", "memory") hold for this process: its own and all above
/// it, of either version. `root`: of the file system.
std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller);

}  // namespace melflow
