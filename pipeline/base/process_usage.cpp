#include "pipeline/base/process_usage.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace melflow {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

ProcessUsage process_usage() {
  ProcessUsage out;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    out.user_seconds = seconds(used.ru_utime);
    out.system_seconds = seconds(used.ru_stime);
    out.voluntary_switches = used.ru_nvcsw;
    out.involuntary_switches = used.ru_nivcsw;
    out.major_faults = used.ru_majflt;
    out.minor_faults = used.ru_minflt;
  }
  std::ifstream in("/proc/self/io");
  std::string name;
  for (std::int64_t value = 0; in >> name >> value;) {
    if (name == "read_bytes:") out.disk_read_bytes = value;
    if (name == "write_bytes:") out.disk_written_bytes = value;
    out.has_disk = true;
  }
  return out;
}

double core_wait_seconds() {
  double out = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    std::ifstream in(task->path() / "schedstat");
    std::int64_t running = 0, ready = 0;  // [ns]
    if (in >> running >> ready) out += 1e-9 * static_cast<double>(ready);
  }
  return out;
}

ProcessUsage operator-(const ProcessUsage& to, const ProcessUsage& from) {
  return {.user_seconds = to.user_seconds - from.user_seconds,
          .system_seconds = to.system_seconds - from.system_seconds,
          .voluntary_switches = to.voluntary_switches - from.voluntary_switches,
          .involuntary_switches = to.involuntary_switches - from.involuntary_switches,
          .major_faults = to.major_faults - from.major_faults,
          .minor_faults = to.minor_faults - from.minor_faults,
          .has_disk = to.has_disk && from.has_disk,
          .disk_read_bytes = to.disk_read_bytes - from.disk_read_bytes,
          .disk_written_bytes = to.disk_written_bytes - from.disk_written_bytes};
}

}  // namespace melflow
