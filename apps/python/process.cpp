#include "apps/python/process.h"

#include <unistd.h>

#include <atomic>

#include "pipeline/problem.h"

namespace melflow {
namespace {

std::atomic<pid_t> process{0};  // the first one

}  // namespace

void check_process() {
  pid_t none = 0;
  if (!process.compare_exchange_strong(none, getpid()) && none != getpid())
    throw RunError(
        "this process was forked off after melflow had started its threads, which it does not "
        "have: start processes by spawn (multiprocessing.set_start_method('spawn')), or make the "
        "first Loader, or open the first rows, after the fork. Neither needs worker processes "
        "(num_workers=0)");
}

bool is_forked_off() {
  const pid_t first = process;
  return first != 0 && first != getpid();
}

}  // namespace melflow
