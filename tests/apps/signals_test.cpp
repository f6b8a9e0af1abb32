// Who gets a signal, and when, in child processes. That a run ends by one is in run_test.cpp.
#include "apps/signals.h"

#include "apps/exit_codes.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>

namespace melflow::test::signals_test {
namespace {

// Makes the signal that the test's own framework watches what it is in a program.
void as_in_a_program() {
  std::signal(SIGTERM, SIG_DFL);
  alarm(60);
}

// The status, as of waitpid(), with which a child ends that does this.
template <class F>
int status_of(F child) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    as_in_a_program();
    _exit(child());
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

}  // namespace

TEST_CASE("signals: one that comes between two runs is for the next") {
  const int status = status_of([] {
    const HeldSignals held;
    {
      const StopOnSignal before([] {}, [] {});
    }
    raise(SIGTERM);
    std::promise<void> told;
    const StopOnSignal next([&] { told.set_value(); }, [] {});
    return told.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready ? 7 : 8;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("signals: one that nobody has taken at the end ends the program") {
  const int status = status_of([] {
    {
      const HeldSignals held;
      raise(SIGTERM);
    }
    return 8;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("signals: one for a forked child ends it, and not the run") {
  const int status = status_of([] {
    std::atomic<bool> is_stopped{false};
    const StopOnSignal run([&] { is_stopped = true; }, [] {});
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);  // where the signal does not end it
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
      for (;;) pause();
    }
    int ended = 0;
    kill(child, SIGTERM);
    if (waitpid(child, &ended, 0) != child) return 9;
    return WIFSIGNALED(ended) && WTERMSIG(ended) == SIGTERM && !is_stopped ? 7 : 8;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("signals: a second one ends the program whatever hangs") {
  for (const bool stop_hangs : {true, false}) {
    CAPTURE(stop_hangs);
    const int status = status_of([stop_hangs] {
      std::promise<void> never, begun;
      const auto hang = [ended = never.get_future().share()] { ended.wait(); };
      const StopOnSignal run(
          [&] {
            begun.set_value();
            if (stop_hangs) hang();
          },
          hang);
      kill(getpid(), SIGTERM);
      begun.get_future().wait();
      kill(getpid(), SIGTERM);
      hang();
      return 8;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == kInterrupted);
  }
}

}  // namespace melflow::test::signals_test
