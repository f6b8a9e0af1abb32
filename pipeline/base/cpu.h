// Finds out how many cores this process may use, and how much memory it has used.
#pragma once

#include <cstddef>
#include <string>

namespace melflow {

/// Returns the number of cores that this process may use: those of its affinity mask, or fewer if a
/// control group (version 1 or 2) has a lower quota, rounded up. At least 1. `root`: the folder
/// that contains proc and sys.
int available_cpus(const std::string& root = "");

/// The largest number of workers of a run; more would only wait for each other.
int most_workers();

/// Returns the peak resident memory of this process so far (VmHWM) [bytes]; 0 if unknown.
std::size_t peak_resident_bytes();
/// Returns free memory to the system and restarts the peak from the memory then resident. If the
/// system does not let a process do that, the peak remains that of the whole process.
void begin_peak_resident();
/// Returns the resident memory of this process now (VmRSS) [bytes]; 0 if unknown.
std::size_t resident_bytes();

}  // namespace melflow
