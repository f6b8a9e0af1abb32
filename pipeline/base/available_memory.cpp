#include "pipeline/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::uint64_t kKibibyte = 1024;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Returns the only number in a file; nullopt for "max" or without a file.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t n = 0;
  if (in >> n) return n;
  return std::nullopt;
}

// Returns the number after a name at the start of a line.
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

const char* limit_file(const ControlGroup& group) {
  return group.is_v2 ? "memory.max" : "memory.limit_in_bytes";
}

// Returns the memory that a group has left; kNoLimit if it has no limit.
std::uint64_t left_in(const ControlGroup& group) {
  const std::string& folder = group.folder;
  const auto limit = number_in(folder + limit_file(group));
  const auto used = number_in(folder + (group.is_v2 ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return kNoLimit;
  const std::uint64_t cache =
      number_after(folder + "memory.stat", group.is_v2 ? "file" : "total_cache").value_or(0);
  const std::uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  std::uint64_t left = kNoLimit;
  if (const auto free = number_after(root + "/proc/meminfo", "MemAvailable:"))
    left = *free * kKibibyte;
  for (const ControlGroup& group : control_groups(root, "memory"))
    left = std::min(left, left_in(group));
  return left;
}

std::uint64_t storable_memory(std::uint64_t available, std::uint64_t holds) {
  constexpr std::uint64_t kShare = 4, kMost = 512 << 20;
  const std::uint64_t all = available > kNoLimit - holds ? kNoLimit : available + holds;
  return all - std::min(all / kShare, kMost);
}

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit out{number_after(root + "/proc/meminfo", "MemTotal:").value_or(0) * kKibibyte, ""};
  for (const ControlGroup& group : control_groups(root, "memory")) {
    std::string file = group.folder + limit_file(group);
    const auto limit = number_in(file);
    if (limit && (out.bytes == 0 || *limit < out.bytes)) out = {*limit, std::move(file)};
  }
  return out;
}

std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller) {
  std::vector<ControlGroup> out;
  std::ifstream groups(root + "/proc/self/cgroup");
  // Version 2: "0::/job/part". Version 1: "4:cpu,cpuacct:/job/part".
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
