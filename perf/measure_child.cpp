// Runs one command and measures it, as a Python script would with os.wait4.
//
// In:  measure_child FILE COMMAND [ARGUMENT ...]
// Out: FILE: wall, user and sys seconds and the peak resident set [KiB] of the command. Its exit
//      status, or 128 and the signal that ended it.
// Why: In ru_maxrss, Linux counts the process before exec, too, so that no child of a Python script
//      seems to take less than the script (15 to 30 MiB). This program takes 4 MiB.

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE COMMAND [ARGUMENT ...]\n", argv[0]);
    return 2;
  }
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
  if (out == nullptr ||
      std::fprintf(out, "wall=%.6f user=%.6f sys=%.6f peak_kib=%ld\n", wall.count(),
                   seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss) < 0 ||
      std::fclose(out) != 0) {
    std::perror(argv[1]);
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
