// The state of a run over time, sampled every 100 ms on a dedicated thread, at longer intervals in
// long runs, so that memory stays bounded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// Points in time, at most kMost of them; each has the same place in all lists.
struct Series {
  static constexpr std::size_t kMost = 300;

  double step = 0.1;  ///< from one point to the next, about [s]
  std::vector<double> seconds;
  std::vector<std::size_t> files, rows, bytes_read;  ///< so far
  std::vector<std::size_t> reserved, resident;       ///< [bytes]
  std::vector<double> cpu_seconds;                   ///< of the process so far
  std::vector<std::int64_t> disk_read_bytes;         ///< likewise, from the disk
  struct Node {
    std::string name;
    std::vector<std::size_t> waiting;  ///< items in the queue before it
    std::vector<StageTime> time;       ///< so far
  };
  std::vector<Node> nodes;

  [[nodiscard]] std::size_t size() const { return seconds.size(); }
  /// Appends a point, where the step has passed since the last one; drops every second one and
  /// doubles the step when there are too many.
  void add(const RunSample& sample, std::size_t resident_bytes, double cpu, std::int64_t disk_read);

 private:
  void thin_out();
};

/// How long each worker was in which node, in steps that are as long for all.
struct WorkerTimes {
  double from = 0;  ///< where the first step begins, after the beginning of the run [s]
  double step = 0;  ///< [s]
  /// Seconds: [worker, node of the plan, step]; a node without any has no steps.
  std::vector<std::vector<std::vector<double>>> workers;
};
/// Of the nodes that run on workers. Steps are joined until there are at most kMostFigures in all.
WorkerTimes worker_times(const VisitLog& visits, const RunReport& report);
constexpr std::size_t kMostFigures = 40'000;

/// Takes the points of a run while it exists; none where the system gives no thread for it.
class SeriesSampler {
 public:
  explicit SeriesSampler(const Runner& runner);
  SeriesSampler(const SeriesSampler&) = delete;
  SeriesSampler& operator=(const SeriesSampler&) = delete;
  ~SeriesSampler() { end(); }

  /// Ends the sampling; returns what was taken.
  Series end();

 private:
  void work();
  void take();

  const Runner& runner_;
  Series series_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::vector<std::thread> thread_;  // one, or none
};

}  // namespace melflow
