#include "pipeline/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace melflow {
namespace {

// "max 100000" or "150000 100000": quota and period in microseconds (cgroup v2).
double quota_of(const std::string& folder) {
  std::ifstream in(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::atof(quota.c_str()) / period;
}

}  // namespace

int available_cpus() {
  int cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
  // The limit of every group from this process's own up to the root counts.
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::")) continue;
    std::string path = line.substr(3);
    while (true) {
      if (const double quota = quota_of("/sys/fs/cgroup" + path); quota > 0)
        cpus = std::min(cpus, std::max(1, static_cast<int>(std::ceil(quota))));
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return cpus;
}

int most_workers() { return std::max(8, 4 * available_cpus()); }

namespace {

// A line of the process's status that counts kilobytes.
std::size_t status_bytes(std::string_view name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
  return 0;
}

}  // namespace

std::size_t peak_resident_bytes() { return status_bytes("VmHWM:"); }
std::size_t resident_bytes() { return status_bytes("VmRSS:"); }

}  // namespace melflow
