// The threads that run oneTBB's tasks of a run: the calling thread, and others that the run starts
// itself and that wait in the same arena.
//
// oneTBB could start them, but it does so in the midst of a task, on any thread, and there an error
// of pthread_create ends the process. So all places of the arena are reserved for threads of the
// run, and oneTBB starts none. Nor does it then compare their number with that of the cores and
// print a warning of its own.
#pragma once

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace melflow {

/// Threads: constructed, started and destroyed by the thread that calls execute(), which is one of
/// the workers meanwhile; enqueue() and count() from any.
class Workers {
 public:
  /// Starts no threads yet: until start_threads(), only the thread that calls execute() works.
  explicit Workers(int count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// All tasks must be done before.
  ~Workers();

  /// Starts the missing threads, or as many as the system allows.
  void start_threads();
  /// The number of threads that work, including the one that calls execute().
  [[nodiscard]] int count() const { return 1 + static_cast<int>(threads_.size()); }

  /// Calls f() in the arena, on this thread.
  template <class F>
  void execute(F&& f) {
    arena_.execute(std::forward<F>(f));
  }
  /// Leaves f() to the threads that were started, of which there must be one; in the order of
  /// calls.
  template <class F>
  void enqueue(F&& f) {
    arena_.enqueue(std::forward<F>(f));
  }

 private:
  const int wanted_;
  std::optional<tbb::global_control> at_least_two_;
  tbb::task_arena arena_;
  // Each thread waits for one of these graphs, and runs the tasks of the arena meanwhile.
  std::vector<std::unique_ptr<tbb::flow::graph>> shifts_;
  std::vector<std::thread> threads_;
};

}  // namespace melflow
