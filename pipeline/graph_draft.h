// A graph while it is checked: nodes as they were read, some of which may be wrong, and what is
// wrong with them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/problem.h"

namespace melflow {

/// A node that a written one stands for, or that goes with it.
struct ExpandedNode {
  NodeSpec spec;
  std::size_t written = 0;                        ///< index of the node of the description
  std::optional<PortType> behind = std::nullopt;  ///< of an inserted node: the port it goes behind
};

struct NodeDraft {
  const NodeSpec* spec = nullptr;
  std::size_t written = 0;
  std::optional<PortType> behind;
  NodeOptions common;
  const StageInfo* info = nullptr;  ///< null: there is no such stage
  std::unique_ptr<StageConfig> config;
  std::vector<int> from;  ///< indices of drafts; of a right node at most one
};

struct GraphDraft {
  const GraphSpec& spec;
  const Registry& registry;
  std::vector<ExpandedNode> expanded = {};  ///< complete before `nodes` point into it
  std::vector<std::string> outlets = {};    ///< of each written node: whose output it gives
  std::vector<NodeDraft> nodes = {};
  Problems problems = {};
  Problems unused = {};  ///< options that have no effect beside the others

  void error(Mark mark, std::string message) { problems.add(std::move(mark), std::move(message)); }
  [[nodiscard]] const NodeDraft& node(int index) const {
    return nodes[static_cast<std::size_t>(index)];
  }
  /// Those that take its output.
  [[nodiscard]] std::vector<int> readers_of(int node) const;
  /// As it was written, or put there for a written one.
  [[nodiscard]] const NodeSpec& spec_of(const PlanNode& node) const;
};

/// Where a node's option was written; the node itself where it was not.
Mark mark_of(const NodeSpec& spec, const std::string& key);

/// Reads an expanded node's options and adds it.
void read_node(GraphDraft& graph, const ExpandedNode& expanded);

/// Finds the nodes that its `from` names; all nodes are read.
void connect(GraphDraft& graph, NodeDraft& node);

}  // namespace melflow
