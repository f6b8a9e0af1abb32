// Checks of stages with several inputs, in which the branches of a graph meet again.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Reports a stage that joins, where an item can come by more than one of its inputs.
void check_join(GraphDraft& graph, const NodeDraft& d);

/// Two inputs of a stage that pairs by which no item comes together: their names, else nothing.
std::optional<std::pair<std::string, std::string>> never_together(const GraphDraft& graph,
                                                                  const NodeDraft& d);

/// Reports a stage that puts side by side what does not come by each of its inputs, in the same
/// blocks: a block that is cut from a file for one input only would wait for memory that those of
/// the other inputs hold. A sink may as well take one input.
void check_pairs(GraphDraft& graph, const NodeDraft& d);

}  // namespace melflow
