// Finds out how many cores this process may use, and how much memory it has used.
#pragma once

#include <cstddef>
#include <string>

namespace melflow {

/// The number of cores that this process may use: those of its affinity mask, or fewer where the
/// quota of a control group (version 1 or 2, rounded up) is lower. At least 1. `root`: of the file
/// system.
int available_cpus(const std::string& root = "");

/// The largest number of workers of a run; more would only wait for each other.
int most_workers();

/// The peak of this process's resident memory so far (VmHWM) [bytes]; 0 when the system does not
/// say.
std::size_t peak_resident_bytes();
/// Restarts the peak from what is resident after free memory went back to the system; where the
/// system does not let a process do that, the peak stays that of the whole process.
void begin_peak_resident();
/// The resident memory of this process now (VmRSS) [bytes]; 0 when the system does not say.
std::size_t resident_bytes();

}  // namespace melflow
