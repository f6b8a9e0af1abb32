// Resources that this process has used so far, by the kernel's accounts. The usage of a run is the
// difference of two.
#pragma once

#include <cstdint>

namespace melflow {

struct ProcessUsage {
  double user_seconds = 0, system_seconds = 0;  ///< processor time of all threads
  std::int64_t voluntary_switches = 0;          ///< threads that waited for something
  std::int64_t involuntary_switches = 0;        ///< threads that had to leave their core
  std::int64_t major_faults = 0;                ///< page faults that read from the disk
  std::int64_t minor_faults = 0;
  bool has_disk = false;             ///< whether the system says the next two
  std::int64_t disk_read_bytes = 0;  ///< fetched from the disk, and not from the page cache
  std::int64_t disk_written_bytes = 0;

  [[nodiscard]] double cpu_seconds() const { return user_seconds + system_seconds; }
};

/// How long the threads that there are now have been ready without a core, by
/// /proc/self/task/*/schedstat [s]; 0 where the system does not say.
double core_wait_seconds();

/// By getrusage() and /proc/self/io; what the system does not say is 0.
ProcessUsage process_usage();
/// What was used between `from` and `to`.
ProcessUsage operator-(const ProcessUsage& to, const ProcessUsage& from);

}  // namespace melflow
