#include "apps/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {

StopOnSignal::StopOnSignal(std::function<void()> stop, std::function<void()> leave)
    : stop_(std::move(stop)), leave_(std::move(leave)) {
  if (Console* host = console()) {
    host->on_stop(stop_);
    return;
  }
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // A signal that was ignored at the start, as by nohup, stays ignored.
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&wanted, signal);
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || end_ < 0) {
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
  close(signals_);
  close(end_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopOnSignal::wait() {
  std::array<pollfd, 2> both{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
  bool stopping = false;
  while (true) {
    if (poll(both.data(), both.size(), -1) < 0 && errno != EINTR) return;
    if (both[1].revents != 0) return;
    if (both[0].revents == 0) continue;
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) continue;
    if (stopping) {
      leave_();
      _exit(kInterrupted);
    }
    stopping = true;
    stop_();
  }
}

}  // namespace melflow
