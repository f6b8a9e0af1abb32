#include "apps/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

std::atomic<Console*> present{nullptr};
std::timed_mutex one_at_a_time;

}  // namespace

Console* console() { return present; }
bool is_asked_to_stop() { return console() != nullptr && console()->is_stopped(); }

ConsoleScope::ConsoleScope(Console& console) : folder_(-1) {
  while (!one_at_a_time.try_lock_for(std::chrono::milliseconds(50)))
    if (console.is_stopped()) throw RunError("stopped before it began");
  folder_ = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  present = &console;
}

ConsoleScope::~ConsoleScope() {
  present = nullptr;
  if (folder_ >= 0) {
    (void)!::fchdir(folder_);
    ::close(folder_);
  }
  one_at_a_time.unlock();
}

}  // namespace melflow
