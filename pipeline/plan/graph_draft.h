// A graph while it is checked: the nodes as read, right or wrong, and their problems.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/plan/plan.h"

namespace melflow {

/// A node that a written node stands for, or that is inserted for one.
struct NodeDraft {
  NodeSpec spec;
  std::size_t written = 0;                        ///< index of the written node
  std::optional<PortType> behind = std::nullopt;  ///< for an inserted node: the port before it
  std::string asked_by = {};  ///< for an inserted node: the option of the written one
  NodeOptions common = {};
  const StageInfo* info = nullptr;  ///< null: there is no such stage
  std::unique_ptr<StageConfig> config = nullptr;
  std::vector<PlanInput> from = {};       ///< by index of the draft; several if it joins
  std::vector<std::string> outputs = {};  ///< names; empty if its output has no name
};

struct GraphDraft {
  const GraphSpec& spec;
  const Registry& registry;
  std::vector<std::string> outlets = {};  ///< per written node: the node that yields its output
  std::vector<NodeDraft> nodes = {};
  Problems problems = {};
  std::size_t wrong_options = 0;    ///< the first of `problems`: how many concern options
  Problems unused = {};             ///< options that have no effect because of others
  std::vector<Problem> notes = {};  ///< warnings that outputs do not store

  void error(Mark mark, std::string message) { problems.add(std::move(mark), std::move(message)); }
  [[nodiscard]] const NodeDraft& node(int index) const {
    return nodes[static_cast<std::size_t>(index)];
  }
  /// Returns the nodes that take the output of a node.
  [[nodiscard]] std::vector<int> readers_of(int node) const;
  /// Returns the type of an output; for a node that passes any type on, its input's; void if
  /// unknown. Without a number that of the first output.
  [[nodiscard]] PortType port_of(PlanInput from) const;
  [[nodiscard]] PortType port_of(int node) const { return port_of(PlanInput{node}); }
  /// Returns the stage of a node as it was written, which may stand for another one.
  [[nodiscard]] const std::string& stage_of(const NodeDraft& d) const;
  [[nodiscard]] const std::string& stage_of(const PlanNode& node) const;
  /// Returns a node's description, as written or as made for a written node.
  [[nodiscard]] const NodeSpec& spec_of(const PlanNode& node) const;
};

/// Returns the position of a node's option or, if it was not written, that of the node.
Mark mark_of(const NodeSpec& spec, const std::string& key);

/// Reads a node's options.
void read_node(GraphDraft& graph, NodeDraft& node);

/// Finds the nodes that `from` names; called when all nodes are read.
void connect(GraphDraft& graph, NodeDraft& node);

}  // namespace melflow
