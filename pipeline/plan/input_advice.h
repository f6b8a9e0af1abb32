// Advice for an input of the wrong type: which node yields the right one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Returns all nodes upstream of a node, the nearest first.
std::vector<int> nodes_before(const GraphDraft& graph, int node);

/// Whether a stage accepts the payload type of that port by its input number `input`.
bool fits(const StageInfo& stage, const PortType& port, std::size_t input = 0);

/// Whether a node takes a single input, which is of the wrong type.
bool is_misled(const GraphDraft& graph, const PlanNode& d);

/// Returns the written name of a node; the last node of a chain has the chain's name.
std::string written_name(const GraphDraft& graph, int node);
/// Returns that name with the written stage: "files (synthetic)".
std::string written_text(const GraphDraft& graph, int node);

/// Returns advice for a node that takes the unsuitable output of `named`: a stage to put between, a
/// nearer node whose output nobody takes, for a stage that takes several types another node that
/// yields one, or to remove the node. "" if nothing would help.
std::string input_advice(const GraphDraft& graph, const PlanNode& d, int named);

/// Returns nodes whose output nobody takes because a misled reader takes another instead, or that
/// pass on an output of the wrong type.
std::set<int> left_by_mistake(const GraphDraft& graph);

}  // namespace melflow
