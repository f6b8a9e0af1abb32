// The threads on which oneTBB's tasks of a run are done: the calling one and others that the run
// makes itself and that wait in the same arena.
//
// oneTBB could make them, but it makes a worker in the midst of a task, on whatever thread finds
// work for it, and an error of pthread_create ends the process there. So all places of the arena are
// kept for threads of the run, and oneTBB makes none. It does not compare the number with that of
// the cores either (and print a warning of its own).
#pragma once

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace melflow {

class Workers {
 public:
  /// Only the thread that calls execute() works yet.
  explicit Workers(int count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Tasks have to be done before.
  ~Workers();

  /// Makes the threads that are missing, or as many as can be made.
  void hire();
  /// Threads that work now, the one that calls execute() included.
  [[nodiscard]] int count() const { return 1 + static_cast<int>(threads_.size()); }

  /// Calls f() in the arena, on this thread.
  template <class F>
  void execute(F&& f) {
    arena_.execute(std::forward<F>(f));
  }

 private:
  const int wanted_;
  tbb::global_control at_least_two_;
  tbb::task_arena arena_;
  // A thread each waits for, so that it does the tasks of the arena meanwhile.
  std::vector<std::unique_ptr<tbb::flow::graph>> shifts_;
  std::vector<std::thread> threads_;
};

}  // namespace melflow
