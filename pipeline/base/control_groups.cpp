#include "pipeline/base/control_groups.h"

#include <fstream>

#include <fmt/format.h>

namespace melflow {

std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller) {
  std::vector<ControlGroup> out;
  std::ifstream groups(root + "/proc/self/cgroup");
  // "0::/job/part" of version 2, "4:cpu,cpuacct:/job/part" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2 = controllers.empty();
    if (!is_v2 &&
        fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) == std::string::npos)
      continue;
    const std::string mount =
        is_v2 ? root + "/sys/fs/cgroup" : fmt::format("{}/sys/fs/cgroup/{}", root, controller);
    std::string group = line.substr(second + 1);
    if (!group.starts_with('/') || group == "/") group.clear();
    while (true) {
      out.push_back({mount + group + "/", is_v2});
      if (group.empty()) break;
      group.resize(group.find_last_of('/'));
    }
  }
  return out;
}

}  // namespace melflow
