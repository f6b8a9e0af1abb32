// The depth of the queue before a node: as many places as the plan says or, for an auto queue, as
// many as help the run. docs/decisions/0010-queue-depth.md has the reasons and the figures.
#pragma once

#include <tbb/spin_mutex.h>

#include <atomic>
#include <chrono>
#include <cstddef>

#include "pipeline/depth_rule.h"
#include "pipeline/plan.h"

namespace melflow {

class GraphNode;
class TaskGraph;

class QueueDepth {
 public:
  using Time = std::chrono::steady_clock::time_point;

  QueueDepth(TaskGraph& graph, const PlanNode& plan, Time now);
  QueueDepth(const QueueDepth&) = delete;
  QueueDepth& operator=(const QueueDepth&) = delete;

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t greatest_capacity() const { return greatest_capacity_; }
  [[nodiscard]] bool adapts() const { return adapts_; }
  /// The number of waiting items with which the node begins (`start_at`).
  [[nodiscard]] static std::size_t start_level(const PlanNode& plan);

  /// Reviews the depth, when NodePlaces::wants_review() says so. `up`: the node before `node`,
  /// whose branch number `branch` leads to it.
  void review(GraphNode& node, GraphNode& up, std::size_t branch);

 private:
  [[nodiscard]] double workers_busy(Time now);

  TaskGraph& graph_;
  const bool adapts_;
  std::atomic<std::size_t> capacity_;
  std::atomic<std::size_t> greatest_capacity_;

  tbb::spin_mutex mutex_;  // of what follows
  DepthRule rule_;
  // At the last review; the times in seconds of its concurrency, as in StageTime.
  Time since_;
  double starved_ = 0, held_back_ = 0;
  // When it was to be deepened the last time, and the workers' time until then [worker-seconds].
  Time asked_;
  double workers_busy_ = 0;
};

}  // namespace melflow
