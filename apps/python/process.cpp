#include "apps/python/process.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

std::atomic<pid_t> process{0};       // the process in which check_process() was called first
std::atomic<bool> is_ending{false};  // set with Python's lock held
// Set with the lock held, when no thread is in WithoutLock or WithinPython any more.
std::atomic<bool> is_over{false};
std::atomic<int> without_lock{0};  // number of threads; incremented with the lock held
std::atomic<int> within{0};        // number of threads in WithinPython

std::mutex mutex;  // guards `all`
std::vector<EndsWithPython*>& those_that_work() {
  static auto* all = new std::vector<EndsWithPython*>;  // outlives all statics
  return *all;
}

[[maybe_unused]] const int kForkIsKnown =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                   [] {
                     mutex.unlock();
                     without_lock = 0;
                     within = 0;
                   });

}  // namespace

void check_process() {
  if (is_ending) throw PythonEnds{};
  pid_t none = 0;
  if (!process.compare_exchange_strong(none, getpid()) && none != getpid())
    throw RunError(
        "this process was forked off after melflow had started its threads, which it does not "
        "have: start processes by spawn (multiprocessing.set_start_method('spawn')), or make the "
        "first Loader, or open the first rows, after the fork. Neither needs worker processes "
        "(num_workers=0)");
}

bool is_forked_off() {
  const pid_t first = process;
  return first != 0 && first != getpid();
}

// Runs on a thread that does not need Python's lock, since a function may hold that for ever.
// PR_SET_PDEATHSIG would react to the end of the thread that started the process, and a run's
// workers end earlier. The kernel gives a process whose parent has ended another parent at once, so
// this needs no descriptor, which a function might close.
void end_with_parent(pid_t parent) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for Python's threads
  std::thread([parent] {
    name_this_thread(thread_name("parent", 1));
    while (getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(0, SIGKILL);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Also while Python ends: the threads that are within Python need the lock to leave it.
WithoutLock::WithoutLock() {
  if (is_over) return;
  ++without_lock;
  state_ = PyEval_SaveThread();
}

WithoutLock::~WithoutLock() {
  if (state_ == nullptr) return;
  PyEval_RestoreThread(state_);
  --without_lock;
  without_lock.notify_all();
}

bool python_ends() { return is_ending; }

WithinPython::WithinPython() {
  ++within;
  if (is_ending) {
    if (--within == 0) within.notify_all();
    return;
  }
  is_within_ = true;
  state_ = PyGILState_Ensure();
}

WithinPython::~WithinPython() {
  if (!is_within_) return;
  PyGILState_Release(state_);
  if (--within == 0) within.notify_all();
}

EndsWithPython::EndsWithPython() {
  const std::lock_guard lock(mutex);
  those_that_work().push_back(this);
}

EndsWithPython::~EndsWithPython() {
  const std::lock_guard lock(mutex);
  std::erase(those_that_work(), this);
}

void end_with_python() {
  is_ending = true;
  do {
    PyThreadState* state = PyEval_SaveThread();
    for (int n = 0; (n = without_lock) > 0;) without_lock.wait(n);
    for (int n = 0; (n = within) > 0;) within.wait(n);
    PyEval_RestoreThread(state);
  } while (without_lock > 0 || within > 0);
  is_over = true;
  // From here on objects are created and destroyed only with Python's lock held.
  const std::vector<EndsWithPython*> all = those_that_work();
  for (auto it = all.rbegin(); it != all.rend(); ++it) (*it)->stop();
}

}  // namespace melflow
