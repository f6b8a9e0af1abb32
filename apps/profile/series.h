// The state of a run over time, sampled on a dedicated thread every 100 ms, and less often in long
// runs, so that memory stays bounded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// Points in time, at most kMost of them; point i is element i of every list.
struct Series {
  static constexpr std::size_t kMost = 300;

  double step = 0.1;  ///< from one point to the next, about [s]
  std::vector<double> seconds;
  std::vector<std::size_t> files, rows, bytes_read;  ///< so far
  std::vector<std::size_t> reserved, resident;       ///< [bytes]
  std::vector<double> cpu_seconds;                   ///< of the process, so far
  std::vector<std::int64_t> disk_read_bytes;         ///< so far
  struct Node {
    std::string name;
    std::vector<std::size_t> waiting;  ///< items in the queue before it
    std::vector<StageTime> time;       ///< so far
  };
  std::vector<Node> nodes;

  [[nodiscard]] std::size_t size() const { return seconds.size(); }
  /// Appends a point if the step has passed since the last one. When there are too many points,
  /// drops every second one and doubles the step.
  void add(const RunSample& sample, std::size_t resident_bytes, double cpu, std::int64_t disk_read);

 private:
  void thin_out();
};

/// How long each worker was in each node, in steps of equal length.
struct WorkerTimes {
  double from = 0;  ///< the beginning of the first step, from the beginning of the run [s]
  double step = 0;  ///< [s]
  /// Seconds: [worker, node of the plan, step]; a node that was never visited has no steps.
  std::vector<std::vector<std::vector<double>>> workers;
};
/// Computes these for nodes on workers. Merges steps until at most kMostFigures values are left.
WorkerTimes worker_times(const VisitLog& visits, const RunReport& report);
constexpr std::size_t kMostFigures = 40'000;

/// Samples a run as long as this object exists; takes no samples where no thread can be started.
class SeriesSampler {
 public:
  explicit SeriesSampler(const Runner& runner);
  SeriesSampler(const SeriesSampler&) = delete;
  SeriesSampler& operator=(const SeriesSampler&) = delete;
  ~SeriesSampler() { end(); }

  /// Ends the sampling and returns the series.
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
