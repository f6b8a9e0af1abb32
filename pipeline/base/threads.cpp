#include "pipeline/base/threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace melflow {

std::string thread_name(std::string_view who, std::size_t number) {
  constexpr std::size_t kLongest = 15;
  const std::string end = fmt::format("-{}", number);
  std::string name = fmt::format("mf-{}", who);
  name.resize(std::min(name.size(), kLongest - std::min(end.size(), kLongest)));
  return name + end;
}

std::size_t thread_number() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads++;
  return mine;
}

// Ignores errors: a thread without a name works as well.
void name_this_thread(const std::string& name) {
  (void)pthread_setname_np(pthread_self(), name.c_str());
}

std::string no_thread_text(const std::string& who) {
  return who +
         ": cannot start a thread that the run needs; allow this process more of them (ulimit "
         "-u, pids.max of its control group)";
}

std::string few_threads_text(int got, int wanted, const std::string& what) {
  return fmt::format("{} of {} {}: the system gave no more threads (ulimit -u, pids.max)", got,
                     wanted, what);
}

void on_threads(int count, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < count && add_thread(others, "helper", guarded); ++i) {
  }
  guarded();
  for (std::thread& t : others) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace melflow
