// A graph as it is described, and the plan that is made of it: data only, and what follows from it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/registry.h"

namespace melflow {

/// How much of something may be lost: not more than `count`, or than `share` of all; neither set,
/// any.
struct CountOrShare {
  std::optional<std::size_t> count;
  std::optional<double> share;
};
template <>
struct OptionType<CountOrShare> {
  static std::string name() { return "count or share (10, 1%)"; }
  static std::string parse(const Value& v, CountOrShare& out);
  static Value echo(const CountOrShare& v);
};

/// What every node has beside its stage's own options; `auto` is filled in by the builder.
struct NodeOptions {
  static constexpr int kMostPlaces = 1 << 20;
  static constexpr int kMostFilesPerTask = 1024;

  std::string stage;
  std::vector<std::string> from;
  std::optional<int> concurrency;
  std::optional<int> queue;
  double start_at = 0;
  std::optional<int> files_per_task;

  void describe(Schema& s);
};

struct GraphSpec {
  std::vector<NodeSpec> nodes;
  Bytes host_memory{std::uint64_t{1} << 30};
  Bytes pinned_memory{std::uint64_t{1} << 30};  ///< of all devices together
  Bytes device_memory{std::uint64_t{4} << 30};  ///< of each
  Mark memory_mark;
  CountOrShare max_failures;
  int workers = 0;  ///< 0: as many as this process has cores
};

struct PlanNode {
  std::string name;
  std::string written;  ///< name of the written node that it stands for, or belongs to
  Mark mark;
  bool is_inserted = false;  ///< by its source, between two written nodes (StageInfo::insert)
  const StageInfo* info = nullptr;
  std::unique_ptr<StageConfig> config;
  std::unique_ptr<Stage> stage;
  StageFaces faces;          ///< of the stage
  StageResources resources;  ///< of the stage
  int from = -1;             ///< index of the node whose output it takes; -1 for the source
  std::vector<int> to;       ///< those that take its output
  int concurrency = 1;
  int queue = 1;  ///< places before it; of an auto queue those it begins with
  /// Of an auto queue, which gets as deep as the run needs it. Equal to `queue`: that number stays.
  int least_queue = 1, greatest_queue = 1;
  double start_at = 0;
  int files_per_task = 0;  ///< of the source; 0: auto

  [[nodiscard]] bool has_auto_queue() const { return least_queue < greatest_queue; }
};

/// A checked plan. Nodes stand in topological order, the source first.
struct Plan {
  std::vector<PlanNode> nodes;
  std::size_t host_memory = 0;
  CountOrShare max_failures;
  int workers = 1;
  std::size_t largest_block = 0;  ///< bytes of the budget that the largest block can need
  /// Bytes of the budget without which the largest item could not be finished: its input and, where
  /// a stage cuts it, one block more.
  std::size_t least_memory = 0;
  RunSettings settings;
  RunServices services;  ///< may be added to until the run begins
  std::vector<Problem> warnings;
  /// The last so many of them are about this machine: told, and not stored in outputs.
  std::size_t machine_warnings = 0;
};

/// The bytes of the budget that one block of this source item can need at most.
std::size_t admission_cost(const Plan& plan, const SourceInfo& source);

}  // namespace melflow
