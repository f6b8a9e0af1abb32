// Starts as many threads as the system allows: a control group (pids.max) or a user (ulimit -u) may
// be allowed fewer than a run wants.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace melflow {

/// Adds a thread that runs `work`. False when the system allows no further thread.
template <class Work>
[[nodiscard]] bool add_thread(std::vector<std::thread>& threads, Work&& work) {
  try {
    threads.emplace_back(std::forward<Work>(work));
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {  // a thread needs a little memory, too
  }
  return false;
}

/// The error when a run cannot go on without another thread: "read: a thread ...".
std::string no_thread_text(const std::string& who);
/// The warning when a run goes on with fewer threads: "2 of 8 workers: ...".
std::string few_threads_text(int got, int wanted, const std::string& what);

/// Runs `work` on the calling thread and on up to `count` - 1 others at the same time; `work` must
/// divide the task among its calls. The first exception is thrown again when all are done.
void on_threads(int count, const std::function<void()>& work);

}  // namespace melflow
