#include "apps/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <system_error>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// How long the thread that watches may take to end the process after a second signal.
constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 500'000};

// The handlers of this process.
struct Handlers {
  int users = 0;  // objects of HeldSignals
  // Counts signals that wait. Never closed, because a handler may be at work on any thread.
  std::atomic<int> waiting{-1};
  std::atomic<int> last{0};  // signal
  std::atomic<int> count{0};
  std::atomic<pid_t> process{0};
  sigset_t wanted{};
  struct sigaction before[std::size(kSignals)]{};
};
Handlers handlers;

bool take_one() {
  std::uint64_t one = 0;
  return read(handlers.waiting, &one, sizeof(one)) == sizeof(one);
}

// Ends the process after kPatience: the thread that should end it may itself wait for what hangs.
// Only calls that a signal handler may make.
void end_soon() {
  struct sigaction end {};
  end.sa_handler = [](int) { _exit(kInterrupted); };
  sigaction(SIGALRM, &end, nullptr);
  const itimerval once{.it_interval = {}, .it_value = kPatience};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void note(int signal) {
  const int error = errno;
  if (getpid() != handlers.process) {  // a child that has no program of its own yet
    std::signal(signal, SIG_DFL);
    raise(signal);
  } else {
    handlers.last = signal;
    if (++handlers.count > 1) end_soon();
    const std::uint64_t one = 1;
    static_cast<void>(write(handlers.waiting, &one, sizeof(one)) == sizeof(one));
  }
  errno = error;
}

[[noreturn]] void fail_to_watch() {
  throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
}

}  // namespace

HeldSignals::HeldSignals() {
  if (console() != nullptr || handlers.users++ > 0) return;
  if (handlers.waiting < 0)
    handlers.waiting = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
  if (handlers.waiting < 0) {
    --handlers.users;
    fail_to_watch();
  }
  while (take_one()) {
  }
  handlers.process = getpid();
  handlers.count = 0;
  sigemptyset(&handlers.wanted);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &handlers.before[i]);
    // A signal that was ignored at the start, as by nohup, stays ignored.
    if (handlers.before[i].sa_handler == SIG_IGN) continue;
    sigaddset(&handlers.wanted, kSignals[i]);
    struct sigaction now {};
    now.sa_handler = note;
    now.sa_flags = SA_RESTART | SA_NODEFER;  // the second one counts whatever the first one does
    sigaction(kSignals[i], &now, nullptr);
  }
}

HeldSignals::~HeldSignals() {
  if (console() != nullptr || --handlers.users > 0) return;
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    if (sigismember(&handlers.wanted, kSignals[i]) == 1)
      sigaction(kSignals[i], &handlers.before[i], nullptr);
  if (take_one()) kill(getpid(), handlers.last);
}

StopOnSignal::StopOnSignal(std::function<void()> stop, std::function<void()> leave)
    : stop_(std::move(stop)), leave_(std::move(leave)) {
  if (Console* host = console()) {
    host->on_stop(stop_);
    return;
  }
  end_ = eventfd(0, EFD_CLOEXEC);
  if (end_ < 0) fail_to_watch();
  pthread_sigmask(SIG_BLOCK, &handlers.wanted, &mask_before_);
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
  close(end_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void StopOnSignal::wait() {
  sigset_t taken = handlers.wanted;
  sigaddset(&taken, SIGALRM);  // of end_soon()
  pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
  std::array<pollfd, 2> both{{{handlers.waiting, POLLIN, 0}, {end_, POLLIN, 0}}};
  bool stopping = false;
  while (true) {
    if (poll(both.data(), both.size(), -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    if (both[1].revents != 0) return;
    if (!take_one()) continue;
    if (stopping) {
      leave_();
      _exit(kInterrupted);
    }
    stopping = true;
    stop_();
  }
}

}  // namespace melflow
