// What a node takes that does not fit, and where it may get what does.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "pipeline/graph_draft.h"

namespace melflow {

/// All nodes that the node's input comes from, the nearest first.
std::vector<int> nodes_before(const GraphDraft& graph, int node);

/// Whether a stage takes what crosses that port.
bool fits(const StageInfo& stage, const PortType& port);

/// For a node that takes the output of `named`, which does not fit: "; put a decode between them",
/// or a node whose output nobody takes and that is nearer. "" where nothing leads to what it takes.
std::string input_advice(const GraphDraft& graph, const NodeDraft& d, int named);

/// Nodes that nobody takes because another node takes what does not fit in their place.
std::set<int> left_by_mistake(const GraphDraft& graph);

}  // namespace melflow
