// Advice for an input of the wrong type: which node has the right one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// All nodes that the node's input comes from, the nearest first.
std::vector<int> nodes_before(const GraphDraft& graph, int node);

/// Whether a stage takes what crosses that port.
bool fits(const StageInfo& stage, const PortType& port, std::size_t input = 0);

/// Whether a node takes one input, which does not fit.
bool is_misled(const GraphDraft& graph, const NodeDraft& d);

/// The name that was written for a node: that of its chain for the last node of one.
std::string written_name(const GraphDraft& graph, int node);
/// That name with the stage that was written: "files (synthetic)".
std::string written_text(const GraphDraft& graph, int node);

/// For a node that takes the output of `named`, which does not fit: "; put a decode between them",
/// or a node whose output nobody takes and that is nearer; for a stage that takes several kinds of
/// items another node that gives one; that the node is needless. "" where nothing would help.
std::string input_advice(const GraphDraft& graph, const NodeDraft& d, int named);

/// Nodes that nobody takes because another node takes what does not fit in their place, or because
/// they hand on what does not fit.
std::set<int> left_by_mistake(const GraphDraft& graph);

}  // namespace melflow
