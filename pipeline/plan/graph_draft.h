// A graph while it is checked: the nodes as read, right or wrong, and their problems.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/plan/plan.h"

namespace melflow {

struct GraphDraft {
  const GraphSpec& spec;
  const Registry& registry;
  /// The node that yields the output of a written node, by its name.
  std::map<std::string, std::string> outlets = {};
  std::vector<PlanNode> nodes = {};
  std::vector<int> sources = {};  ///< indices of the nodes that are sources, as written
  Problems problems = {};
  std::size_t wrong_options = 0;  ///< number of problems of options; they come first
  Problems unused = {};           ///< options that have no effect because of others

  void error(Mark mark, std::string message) { problems.add(std::move(mark), std::move(message)); }
  /// Fills in `sources`; called when all nodes are read.
  void find_sources();
  [[nodiscard]] const PlanNode& node(int index) const {
    return nodes[static_cast<std::size_t>(index)];
  }
  /// Returns the nodes that take the output of a node.
  [[nodiscard]] std::vector<int> readers_of(int node) const;
  /// Returns the type of an output; for a node that passes any type on, its input's; void if
  /// unknown. If `from` has no output number, the first output's.
  [[nodiscard]] PortType port_of(PlanInput from) const;
  [[nodiscard]] PortType port_of(int node) const { return port_of(PlanInput{node}); }
  /// The node as written that `node` stems from.
  [[nodiscard]] const NodeSpec& written(const PlanNode& node) const;
};

/// Reads a node's options.
void read_node(GraphDraft& graph, PlanNode& node);

/// Finds the nodes that `from` names; called when all nodes are read.
void connect(GraphDraft& graph, PlanNode& node);

}  // namespace melflow
