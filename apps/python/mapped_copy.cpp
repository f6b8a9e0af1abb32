#include "apps/python/mapped_copy.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

#include "apps/python/stream_copy.h"

namespace melflow {
namespace {

thread_local sigjmp_buf* landing = nullptr;  // jump target of this thread's current copy
struct sigaction others {};                  // the previous handler of the signal

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  if ((others.sa_flags & SA_SIGINFO) != 0)
    others.sa_sigaction(signal, info, context);
  else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN)
    others.sa_handler(signal);
  else
    sigaction(signal, &others, nullptr);  // the access is repeated and ends the process
}

}  // namespace

void take_bus_errors() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction now {};
  if (sigaction(SIGBUS, nullptr, &now) != 0 || now.sa_sigaction == on_bus_error) return;
  others = now;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGBUS, &ours, nullptr);
}

bool mapped_copy(std::byte* to, const std::byte* from, std::size_t bytes, bool streams) {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    landing = nullptr;
    return false;
  }
  landing = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (streams)
    stream_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  landing = nullptr;
  return true;
}

}  // namespace melflow
