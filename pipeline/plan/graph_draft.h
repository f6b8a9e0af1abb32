// A graph while it is checked: the nodes as they were read, right or wrong, and their problems.
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
  std::vector<PlanInput> from = {};  ///< by indices of drafts; of a right node that joins several
  std::vector<std::string> outputs = {};  ///< names; none where there is one without a name
};

struct GraphDraft {
  const GraphSpec& spec;
  const Registry& registry;
  std::vector<std::string> outlets = {};  ///< per written node: the node that gives its output
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
  /// The type of a node's output, the first of several; where it hands on what comes, of that; void
  /// where nobody knows.
  [[nodiscard]] PortType port_of(PlanInput from) const;
  [[nodiscard]] PortType port_of(int node) const { return port_of(PlanInput{node}); }
  /// The description of a node, as it was written or as it was made for a written node.
  [[nodiscard]] const NodeSpec& spec_of(const PlanNode& node) const;
};

/// The place where a node's option was written, or the node's place where it was not.
Mark mark_of(const NodeSpec& spec, const std::string& key);

/// Reads a node's options.
void read_node(GraphDraft& graph, NodeDraft& node);

/// Finds the nodes that its `from` names; to be called when all nodes are read.
void connect(GraphDraft& graph, NodeDraft& node);

}  // namespace melflow
