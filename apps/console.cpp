#include "apps/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace melflow {
namespace {

std::atomic<Console*> present{nullptr};
std::mutex one_at_a_time;

}  // namespace

Console* console() { return present; }

ConsoleScope::ConsoleScope(Console& console) : folder_(-1) {
  one_at_a_time.lock();
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
