#include "pipeline/base/cpu.h"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "pipeline/base/available_memory.h"

namespace melflow {
namespace {

// Returns a group's quota of cores, not rounded; nullopt without a limit.
std::optional<double> quota_of(const ControlGroup& group) {
  double quota = 0, period = 0;  // [us]
  if (group.is_v2) {
    // "max 100000" or "150000 100000".
    if (!(std::ifstream(group.folder + "cpu.max") >> quota >> period)) return std::nullopt;
  } else if (!(std::ifstream(group.folder + "cpu.cfs_quota_us") >> quota) ||
             !(std::ifstream(group.folder + "cpu.cfs_period_us") >> period)) {
    return std::nullopt;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;  // version 1 writes -1 for no limit
  return quota / period;
}

}  // namespace

int available_cpus(const std::string& root) {
  int cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
  for (const ControlGroup& group : control_groups(root, "cpu"))
    if (const auto quota = quota_of(group); quota && *quota < cpus)
      cpus = std::max(1, static_cast<int>(std::ceil(*quota)));
  return cpus;
}

int most_workers() { return std::max(8, 4 * available_cpus()); }

namespace {

// Reads a line of the process's status that counts kilobytes; returns bytes.
std::size_t status_bytes(std::string_view name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
  return 0;
}

}  // namespace

std::size_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void begin_peak_resident() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ofstream("/proc/self/clear_refs") << "5\n";
}

std::size_t resident_bytes() { return status_bytes("VmRSS:"); }

}  // namespace melflow
