// Logs every stay of items in a stage: the first visits in full, for a trace of the run, and each
// thread's time per node, over time. Uses the same times as the accounts, so that the time in a
// stage's visits adds up to its `busy`.
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "pipeline/report/busy_times.h"

namespace melflow {

struct Visit {
  std::chrono::steady_clock::time_point began, ended;
  std::int32_t node = 0;    ///< in the order of the plan
  std::uint32_t files = 0;  ///< source items in it, from `index` on; 0: none
  std::size_t index = 0;    ///< of the oldest source item
  std::size_t bytes_in = 0, bytes_out = 0, rows_in = 0, rows_out = 0;
};

/// Each thread writes into its own part, so threads do not wait for each other.
class VisitLog {
 public:
  /// Keeps the first `most` visits and counts the others; `began`: the start of the threads' times.
  explicit VisitLog(std::size_t most = kMost,
                    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now())
      : most_(most), began_(began) {}

  void add(const Visit& visit) noexcept;

  // ---- For use after the run

  /// The visits of each thread, in the order in which they ended.
  [[nodiscard]] std::vector<const std::deque<Visit>*> by_thread() const;
  /// The time of each of these threads in the nodes, in the same order.
  [[nodiscard]] std::vector<BusyTimes> times_by_thread() const;
  [[nodiscard]] std::chrono::steady_clock::time_point began() const { return began_; }
  /// The number of visits that were not kept.
  [[nodiscard]] std::size_t left_out() const { return left_out_.load(); }

  static constexpr std::size_t kMost = 500'000;  ///< about 40 MB

 private:
  struct Thread {
    std::deque<Visit> visits;
    BusyTimes times;
  };
  const std::size_t most_;
  const std::chrono::steady_clock::time_point began_;
  std::atomic<std::size_t> count_{0}, left_out_{0};
  tbb::enumerable_thread_specific<Thread> threads_;
};

}  // namespace melflow
