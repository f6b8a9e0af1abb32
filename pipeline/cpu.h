// How many workers and how much memory this process may really use.
#pragma once

#include <cstddef>

namespace melflow {

/// Cores this process may use: the affinity mask, lowered by the cgroup's cpu.max where one is set
/// (rounded up). At least 1.
int available_cpus();

/// The most threads that compute which a run takes: more than that only wait for each other.
int most_workers();

/// Peak resident memory of this process so far (VmHWM) [bytes]; 0 when the system does not say.
std::size_t peak_resident_bytes();

}  // namespace melflow
