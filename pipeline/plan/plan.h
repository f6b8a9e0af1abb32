// The description of a graph, and the plan that is made from it. Both are data only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/registry.h"

namespace melflow {

/// A limit on losses: at most `count`, or at most the `share` of all; neither set: no limit.
struct CountOrShare {
  std::optional<std::size_t> count;
  std::optional<double> share;
  [[nodiscard]] bool is_set() const { return count || share; }
};
template <>
struct OptionType<CountOrShare> {
  static std::string name() { return "count or share (10, 1%)"; }
  static std::string parse(const Value& v, CountOrShare& out);
  static Value echo(const CountOrShare& v);
};

/// The sinks that an error in a node costs a file: all, or those of the branch.
enum class OnFailure { file, branch };
template <>
struct EnumNames<OnFailure> {
  static constexpr std::pair<const char*, OnFailure> values[] = {{"file", OnFailure::file},
                                                                 {"branch", OnFailure::branch}};
};

/// The options that every node has besides its stage's; the builder fills in `auto`.
struct NodeOptions {
  static constexpr int kMostPlaces = 1 << 20;
  static constexpr int kMostFilesPerTask = 65536;
  static constexpr int kMostFilesOfAuto = 1024;  ///< the limit if the run chooses

  std::string stage;
  std::vector<std::string> from;
  std::optional<int> concurrency;
  std::optional<int> queue;
  double start_at = 0;
  std::optional<int> files_per_task;
  std::optional<OnFailure> on_failure;
  CountOrShare max_failures;

  void describe(Schema& s);
};

struct GraphSpec {
  std::vector<NodeSpec> nodes;
  Bytes host_memory{std::uint64_t{1} << 30};
  Bytes pinned_memory{std::uint64_t{1} << 30};  ///< for all devices together
  Bytes device_memory{std::uint64_t{4} << 30};  ///< on each device
  Mark memory_mark;
  CountOrShare max_failures;
  int workers = 0;  ///< number of workers; 0: the number of cores that this process may use
};

/// Returns the position of a node's option or, if it was not written, that of the node.
Mark mark_of(const NodeSpec& node, const std::string& key);

/// The number of stages in a row that may yield several blocks or items for one. Each has some bits
/// of Origin::block, and a share of the memory kept for the oldest item.
inline constexpr int kMostExpanding = 3;

/// The output that a node takes.
struct PlanInput {
  int node = -1;    ///< index of the node that yields it
  int output = -1;  ///< which of that node's named outputs; -1 if it has none
};

/// A node, from its description to the one that runs: members further down get their values later.
struct PlanNode : NodeSpec {        // options: as written, or made for an expanded node
  std::string written;              ///< name of the written node that it stems from
  std::string stage_name;           ///< as written; may stand for another stage (`info`)
  const StageInfo* info = nullptr;  ///< null: there is no such stage
  std::unique_ptr<StageConfig> config;
  NodeOptions common;
  std::vector<std::string> outputs;  ///< names; empty if its output has no name
  /// For a node that the source inserts between written ones (StageInfo::insert): the port before
  /// it, and the option that asked for it.
  std::optional<PortType> behind;
  std::string asked_by;
  std::vector<PlanInput> inputs;  ///< none for the source
  PortType port;                  ///< the type of its inputs

  // ---- in a plan
  bool is_inserted = false;
  std::unique_ptr<Stage> stage;
  StageFaces faces;                  ///< of the stage
  StageResources resources;          ///< of the stage
  std::vector<int> to;               ///< indices of the nodes that take its output
  bool fails_branch = false;         ///< an error costs an item only the sinks downstream
  bool takes_parts = false;          ///< downstream of a node that cuts items into parts
  bool is_behind_expanding = false;  ///< downstream of a node that yields several blocks for one
  /// The difference of Origin::block between two consecutive blocks cut from the same one; leaves
  /// numbers for the blocks that later stages cut these into.
  std::uint64_t block_step = 1;
  /// If such stages follow: the bytes of the budget that they need to finish the oldest item, which
  /// this node must not take for later blocks of that item.
  std::size_t kept_behind = 0;
  int concurrency = 1;
  int queue = 1;  ///< size of its input queue [items]
  double start_at = 0;
  CountOrShare max_failures;  ///< limit of files that fail in this node
  int files_per_task = 0;     ///< for the source; 0: auto

  /// Index of the first node whose output it takes; -1 for the source.
  [[nodiscard]] int from() const { return inputs.empty() ? -1 : inputs.front().node; }
};

/// A checked plan. Nodes are in topological order, the source first.
struct Plan {
  std::vector<PlanNode> nodes;
  /// The sources, in the written order, if the graph has several. The first of `nodes` unites them,
  /// with an output named after each.
  std::vector<PlanNode> sources;
  std::size_t host_memory = 0;
  CountOrShare max_failures;
  int workers = 1;
  std::size_t largest_block = 0;  ///< the most bytes of the budget that a block can need
  /// If a stage cuts items into parts: the most that a piece of a part can need after that stage,
  /// and what the oldest part needs to be finished; else 0.
  std::size_t largest_part = 0, least_for_parts = 0;
  /// The bytes of the budget that the largest item needs to be finished: its largest block, one
  /// more for each stage in a row that yields several blocks, and the bytes for its parts.
  std::size_t least_memory = 0;
  RunSettings settings;
  RunServices services;             ///< more may be added until the run begins
  Problems problems;                ///< none in a plan that can run
  std::vector<Problem> notes = {};  ///< warnings that outputs do not store
  std::vector<Problem> warnings;
  /// The number of warnings, at the end of `warnings`, that concern this machine or only speed:
  /// they are shown but not stored in outputs.
  std::size_t machine_warnings = 0;

  void error(Mark mark, std::string message) { problems.add(std::move(mark), std::move(message)); }
  /// Removes all limits on the number of failed files.
  void allow_failures();
};

/// The first of the sources that were written.
inline const PlanNode& first_source(const Plan& plan) {
  return plan.sources.empty() ? plan.nodes.front() : plan.sources.front();
}
/// The name of an input as written in a configuration: NODE, NODE.OUTPUT or the name of one of
/// several sources.
std::string name_of(const Plan& plan, const PlanInput& input);
}  // namespace melflow
