#include "pipeline/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace melflow {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// The only number in a file; none in "max" or where there is no file.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t n = 0;
  if (in >> n) return n;
  return std::nullopt;
}

// The number behind a name that begins a line.
std::optional<std::uint64_t> number_after(const std::string& path, std::string_view name) {
  std::ifstream in(path);
  std::string word;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::uint64_t n = 0;
    if (words >> word && word == name && words >> n) return n;
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *used, *page_cache;
};

// What a group and those above it leave.
std::uint64_t left_in_groups(const std::string& mount, std::string group, const GroupFiles& files) {
  std::uint64_t left = kNoLimit;
  while (true) {
    const std::string folder = mount + group + "/";
    const auto limit = number_in(folder + files.limit);
    const auto used = number_in(folder + files.used);
    if (limit && used) {
      const std::uint64_t cache =
          number_after(folder + "memory.stat", files.page_cache).value_or(0);
      const std::uint64_t held = *used - std::min(*used, cache);
      left = std::min(left, *limit - std::min(*limit, held));
    }
    if (group.empty()) return left;
    group.resize(group.find_last_of('/'));
  }
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  constexpr std::uint64_t kKibibyte = 1024;
  std::uint64_t left = kNoLimit;
  if (const auto free = number_after(root + "/proc/meminfo", "MemAvailable:"))
    left = *free * kKibibyte;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (!group.starts_with('/') || group == "/") group.clear();
    if (kinds == ",,")
      left = std::min(left, left_in_groups(root + "/sys/fs/cgroup", group,
                                           {"memory.max", "memory.current", "file"}));
    else if (kinds.find(",memory,") != kinds.npos)
      left = std::min(
          left, left_in_groups(root + "/sys/fs/cgroup/memory", group,
                               {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"}));
  }
  return left;
}

}  // namespace melflow
