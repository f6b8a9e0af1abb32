// Runs one command and measures it, as a Python script would with os.wait4.
//
// In:  measure_child FILE COMMAND [ARGUMENT ...]
// Out: FILE: wall, user and sys seconds and the peak resident set [KiB] of the command; where the
//      machine counts them, its cycles, instructions and last-level cache misses, those of the
//      kernel included if allowed. Its exit status, or 128 and the signal that ended it.
// Why: In ru_maxrss, Linux counts the process before exec, too, so that no child of a Python script
//      seems to take less than the script (15 to 30 MiB). This program takes 4 MiB.

#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// Counts in the command and its threads, from its exec; -1 where the machine does not.
int open_counter(std::uint64_t event) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_HARDWARE;
  attr.size = sizeof attr;
  attr.config = event;
  attr.disabled = attr.enable_on_exec = attr.inherit = 1;
  for (const unsigned without_kernel : {0U, 1U}) {
    attr.exclude_kernel = attr.exclude_hv = without_kernel;
    const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0) return static_cast<int>(fd);
  }
  return -1;
}

struct Counter {
  const char* name;
  int fd;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE COMMAND [ARGUMENT ...]\n", argv[0]);
    return 2;
  }
  const Counter counters[] = {{"cycles", open_counter(PERF_COUNT_HW_CPU_CYCLES)},
                              {"instructions", open_counter(PERF_COUNT_HW_INSTRUCTIONS)},
                              {"cache_misses", open_counter(PERF_COUNT_HW_CACHE_MISSES)}};
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the command ends with an interrupted measurement
    execvp(argv[2], argv + 2);
    std::fprintf(stderr, "%s: %s\n", argv[2], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    std::perror("melflow_measure_child");
    return 1;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::FILE* out = std::fopen(argv[1], "w");
  if (out != nullptr) {
    std::fprintf(out, "wall=%.6f user=%.6f sys=%.6f peak_kib=%ld", wall.count(),
                 seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss);
    for (const Counter& c : counters) {
      std::uint64_t count = 0;
      if (c.fd >= 0 && read(c.fd, &count, sizeof count) == sizeof count && count > 0)
        std::fprintf(out, " %s=%llu", c.name, static_cast<unsigned long long>(count));
    }
  }
  if (out == nullptr || std::fputs("\n", out) < 0 || std::fclose(out) != 0) {
    std::perror(argv[1]);
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
