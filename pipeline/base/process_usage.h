// Resources that this process has used so far, according to the kernel. The usage of a run is the
// difference of two measurements.
#pragma once

#include <cstdint>

namespace melflow {

struct ProcessUsage {
  double user_seconds = 0, system_seconds = 0;  ///< processor time of all threads
  std::int64_t voluntary_switches = 0;          ///< waits, for example for I/O
  std::int64_t involuntary_switches = 0;        ///< preemptions
  std::int64_t major_faults = 0;                ///< page faults that read from the disk
  std::int64_t minor_faults = 0;
  bool has_disk = false;             ///< whether the system reports the next two
  std::int64_t disk_read_bytes = 0;  ///< fetched from the disk, not from the page cache
  std::int64_t disk_written_bytes = 0;

  [[nodiscard]] double cpu_seconds() const { return user_seconds + system_seconds; }
};

/// Returns how long the current threads were ready without a core [s], by
/// /proc/self/task/*/schedstat; 0 if unknown.
double core_wait_seconds();

/// Reads getrusage() and /proc/self/io; values that the system does not report are 0.
ProcessUsage process_usage();
/// Returns the usage between `from` and `to`.
ProcessUsage operator-(const ProcessUsage& to, const ProcessUsage& from);

}  // namespace melflow
