// Starts as many threads as the system allows: a control group (pids.max) or a user (ulimit -u) may
// be allowed fewer than a run needs.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace melflow {

/// Returns "mf-worker-1" for the first "worker". Cuts `who`, not the number, to fit into the 15
/// bytes that Linux allows.
std::string thread_name(std::string_view who, std::size_t number);
/// Returns the number of the calling thread, among those that ever asked, from 0.
std::size_t thread_number();
/// Names the calling thread for top, gdb and perf.
void name_this_thread(const std::string& name);

/// Adds a thread that runs `work` and has a thread_name(). Returns false if the system allows no
/// more threads.
template <class Work>
[[nodiscard]] bool add_thread(std::vector<std::thread>& threads, std::string_view who,
                              Work&& work) {
  try {
    threads.emplace_back(
        [name = thread_name(who, threads.size() + 1), work = std::forward<Work>(work)]() mutable {
          name_this_thread(name);
          work();
        });
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {  // a thread needs some memory, too
  }
  return false;
}

/// The error if a run cannot continue without another thread: "read: a thread ...".
std::string no_thread_text(const std::string& who);
/// The warning if a run continues with fewer threads: "2 of 8 workers: ...".
std::string few_threads_text(int got, int wanted, const std::string& what);

/// Runs `work` on the calling thread and on up to `count` - 1 others at the same time; `work` must
/// divide the task among its calls. Rethrows the first exception when all have finished.
void on_threads(int count, const std::function<void()>& work);

}  // namespace melflow
