#include "apps/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

std::atomic<int> woken{-1};  // an eventfd, by the handler
std::atomic<int> last{0};    // signal

void wake(int signal) {
  const int error = errno;
  last = signal;
  const std::uint64_t one = 1;
  static_cast<void>(write(woken, &one, sizeof(one)) == sizeof(one));
  errno = error;
}

}  // namespace

StopOnSignal::StopOnSignal(std::function<void()> stop, std::function<void()> leave)
    : stop_(std::move(stop)), leave_(std::move(leave)) {
  if (Console* host = console()) {
    host->on_stop(stop_);
    return;
  }
  sigemptyset(&wanted_);
  caught_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
  end_ = eventfd(0, EFD_CLOEXEC);
  woken = caught_;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // A signal that was ignored at the start, as by nohup, stays ignored.
    if (before_[i].sa_handler == SIG_IGN) continue;
    sigaddset(&wanted_, kSignals[i]);
    struct sigaction now {};
    now.sa_handler = wake;
    now.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &now, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &wanted_, &mask_before_);
  if (caught_ < 0 || end_ < 0) {
    const int error = errno;
    give_back();
    throw std::system_error(error, std::generic_category(), "cannot watch for signals");
  }
  if (!add_thread(thread_, "signals", [this] { wait(); })) {
    give_back();
    throw RunError(no_thread_text("signals"));
  }
}

StopOnSignal::~StopOnSignal() {
  if (Console* host = console()) {
    host->on_stop({});
    return;
  }
  const std::uint64_t one = 1;
  while (write(end_, &one, sizeof(one)) != sizeof(one)) {  // else the thread would wait forever
  }
  thread_.front().join();
  give_back();
}

void StopOnSignal::give_back() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &before_[i], nullptr);
  std::uint64_t one = 0;
  const bool came_at_the_end = read(caught_, &one, sizeof(one)) == sizeof(one);
  woken = -1;
  close(caught_);
  close(end_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  if (came_at_the_end) kill(getpid(), last);  // for whoever handles signals from now on
}

void StopOnSignal::wait() {
  pthread_sigmask(SIG_UNBLOCK, &wanted_, nullptr);
  std::array<pollfd, 2> both{{{caught_, POLLIN, 0}, {end_, POLLIN, 0}}};
  bool stopping = false;
  while (true) {
    if (poll(both.data(), both.size(), -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    if (both[1].revents != 0) return;
    std::uint64_t one = 0;
    if (read(caught_, &one, sizeof(one)) != sizeof(one)) continue;
    if (stopping) {
      leave_();
      _exit(kInterrupted);
    }
    stopping = true;
    stop_();
  }
}

}  // namespace melflow
