// Threads, as many as the system has to give: a control group (pids.max) or a user (ulimit -u) may
// be allowed fewer than a run would like to have.
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

/// Adds a thread that runs `work`. False where there is none to be had.
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

/// What to tell a user where a run cannot do without another thread: "read: a thread ...".
std::string no_thread_text(const std::string& who);
/// And where it goes on with fewer: "2 of 8 workers: ...".
std::string few_threads_text(int got, int wanted, const std::string& what);

/// Runs `work` on the calling thread and beside it on up to `count` - 1 others, so that it has to
/// share out among them what there is to do. The first exception is thrown again when all are done.
void on_threads(int count, const std::function<void()>& work);

}  // namespace melflow
