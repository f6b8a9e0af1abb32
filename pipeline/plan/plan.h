// The description of a graph, and the plan that is made of it. Both are data only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/registry.h"

namespace melflow {

/// How much of something may be lost: at most `count`, or at most the `share` of all; neither set:
/// no limit.
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

/// What an error in a node costs a file.
enum class OnFailure { file, branch };
template <>
struct EnumNames<OnFailure> {
  static constexpr std::pair<const char*, OnFailure> values[] = {{"file", OnFailure::file},
                                                                 {"branch", OnFailure::branch}};
};

/// The options that every node has beside its stage's own; the builder fills in `auto`.
struct NodeOptions {
  static constexpr int kMostPlaces = 1 << 20;
  static constexpr int kMostFilesPerTask = 65536;
  static constexpr int kMostFilesOfAuto = 1024;  ///< where the run chooses

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
  int workers = 0;  ///< number of workers; 0: as many as this process has cores
};

/// Of the stages that give several blocks or items for one, so many may be one behind the other:
/// each has some bits of Origin::block, and a share of the memory that is kept for the oldest item.
inline constexpr int kMostExpanding = 3;

/// Whose output a node takes.
struct PlanInput {
  int node = -1;    ///< its index
  int output = -1;  ///< which of its named outputs; -1 where it has none
};

struct PlanNode {
  std::string name;
  std::string written;  ///< name of the written node that it comes from
  Mark mark;
  bool is_inserted = false;  ///< inserted by the source between written nodes (StageInfo::insert)
  const StageInfo* info = nullptr;
  Value options;  ///< as they were written, or made for an expanded node, with their places
  std::unique_ptr<StageConfig> config;
  std::unique_ptr<Stage> stage;
  StageFaces faces;                  ///< of the stage
  StageResources resources;          ///< of the stage
  std::vector<PlanInput> inputs;     ///< none for the source
  std::vector<int> to;               ///< indices of the nodes that take its output
  std::vector<std::string> outputs;  ///< names; none where there is one without a name
  PortType port;                     ///< what its inputs give
  bool fails_branch = false;         ///< an error costs an item only the sinks behind the node
  bool takes_parts = false;          ///< it is behind a node that cuts items into parts
  bool is_behind_expanding = false;  ///< it is behind a node that gives several blocks for one
  /// Origin::block of two blocks that it cuts one after the other from the same one differ by so
  /// much: there is room for what stages behind it cut these into.
  std::uint64_t block_step = 1;
  /// Where such stages are behind it: what they need of the budget to finish the oldest item, which
  /// it must not take for later blocks of that [bytes].
  std::size_t kept_behind = 0;
  int concurrency = 1;
  int queue = 1;  ///< places of the queue before it
  double start_at = 0;
  CountOrShare max_failures;  ///< of the files that fail in this node
  int files_per_task = 0;     ///< for the source; 0: auto

  /// Index of the first node whose output it takes; -1 for the source.
  [[nodiscard]] int from() const { return inputs.empty() ? -1 : inputs.front().node; }
};

/// A checked plan. Nodes stand in topological order, the source first.
struct Plan {
  std::vector<PlanNode> nodes;
  /// Where the graph has several sources, these, in the order in which they were written. The first
  /// of `nodes` is made of them, with an output for each, of its name.
  std::vector<PlanNode> sources;
  std::size_t host_memory = 0;
  CountOrShare max_failures;
  int workers = 1;
  std::size_t largest_block = 0;  ///< the most bytes of the budget that a block can need
  /// Where a stage cuts items into parts: the most that a piece of a part can need on its way
  /// behind that stage, and what the oldest part needs to be finished; else 0.
  std::size_t largest_part = 0, least_for_parts = 0;
  /// The bytes of the budget that the largest item needs to be finished: its input, one more for
  /// each stage in a row that gives several blocks, and what its parts need.
  std::size_t least_memory = 0;
  RunSettings settings;
  RunServices services;  ///< may be added to until the run begins
  std::vector<Problem> warnings;
  /// The number of warnings, the last ones, that are about this machine or about speed alone: they
  /// are shown but not stored in outputs.
  std::size_t machine_warnings = 0;

  /// Any number of files may fail from now on.
  void allow_failures();
};

/// The first of the sources that were written.
inline const PlanNode& first_source(const Plan& plan) {
  return plan.sources.empty() ? plan.nodes.front() : plan.sources.front();
}
/// How an input is written in a configuration: NODE, NODE.OUTPUT or, of several sources, the name
/// of one.
std::string name_of(const Plan& plan, const PlanInput& input);
/// The most bytes that come to a node for one block, where `bounds` has what the nodes give; of
/// several inputs together for a stage that pairs.
std::size_t bytes_in(const PlanNode& node, const std::vector<std::size_t>& bounds);
/// What a stage may give of parts, of which nothing is known before they are cut [bytes].
inline constexpr std::size_t kNoBound = ~std::size_t{0};
/// The most bytes of the budget that one block of this source item can need; to where it is cut
/// into parts, if it is. `bounds`, unless it is null, gets the most that each node may give of it,
/// or kNoBound.
std::size_t admission_cost(const Plan& plan, const SourceInfo& source,
                           std::vector<std::size_t>* bounds = nullptr);
/// The most bytes of the budget that a piece of a part can need, which is cut by this node and has
/// `bytes` bytes then.
std::size_t part_cost(const Plan& plan, std::size_t node, std::size_t bytes);

}  // namespace melflow
