// A graph while it is checked: the nodes as they were read, right or wrong, and their problems.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/problem.h"

namespace melflow {

/// A node of the graph that a written node stands for, or that is inserted for one.
struct ExpandedNode {
  NodeSpec spec;
  std::size_t written = 0;                        ///< index of the node in the description
  std::optional<PortType> behind = std::nullopt;  ///< for an inserted node: the port before it
  std::string asked_by = {};  ///< for an inserted node: the option of the written one
};

struct NodeDraft {
  const NodeSpec* spec = nullptr;
  std::size_t written = 0;
  std::optional<PortType> behind;
  std::string asked_by;
  NodeOptions common;
  const StageInfo* info = nullptr;  ///< null: there is no such stage
  std::unique_ptr<StageConfig> config;
  std::vector<PlanInput> from;       ///< by indices of drafts; of a right node that joins several
  std::vector<std::string> outputs;  ///< names; none where there is one without a name
};

struct GraphDraft {
  const GraphSpec& spec;
  const Registry& registry;
  std::vector<ExpandedNode> expanded = {};  ///< complete before `nodes` point into it
  std::vector<std::string> outlets = {};    ///< per written node: the node that gives its output
  std::vector<NodeDraft> nodes = {};
  Problems problems = {};
  std::size_t wrong_options = 0;    ///< how many of them are of options: those that came first
  Problems unused = {};             ///< options that have no effect beside the others
  std::vector<Problem> notes = {};  ///< warnings that outputs do not have

  void error(Mark mark, std::string message) { problems.add(std::move(mark), std::move(message)); }
  [[nodiscard]] const NodeDraft& node(int index) const {
    return nodes[static_cast<std::size_t>(index)];
  }
  /// The nodes that take the output of a node.
  [[nodiscard]] std::vector<int> readers_of(int node) const;
  /// What it gives: where it hands on what comes, that; void where nobody knows.
  [[nodiscard]] PortType port_of(int index) const;
  /// The description of a node, as it was written or as it was made for a written node.
  [[nodiscard]] const NodeSpec& spec_of(const PlanNode& node) const;
};

/// The place where a node's option was written, or the node's place where it was not.
Mark mark_of(const NodeSpec& spec, const std::string& key);

/// Reads an expanded node's options and adds it.
void read_node(GraphDraft& graph, const ExpandedNode& expanded);

/// Finds the nodes that its `from` names; to be called when all nodes are read.
void connect(GraphDraft& graph, NodeDraft& node);

}  // namespace melflow
