// Checks stages with several inputs, in which the branches of a graph meet again.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Reports a stage that joins if an item can reach it by more than one of its inputs.
void check_join(GraphDraft& graph, const PlanNode& d);

/// Returns the names of two inputs of a stage that pairs which never yield the same item, if any.
std::optional<std::pair<std::string, std::string>> never_together(const GraphDraft& graph,
                                                                  const PlanNode& d);

/// Reports a stage that pairs if its inputs do not all yield every item in the same blocks: a block
/// that is cut from a file for one input only would wait for memory that the other inputs hold. A
/// sink may have a single input.
void check_pairs(GraphDraft& graph, const PlanNode& d);

}  // namespace melflow
