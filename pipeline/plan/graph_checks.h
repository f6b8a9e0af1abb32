// Checks the input of each node and the connections of the graph. No stage is made yet.
#pragma once

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Reports a connected node that does not take the type of its input. Not for nodes that are still
/// to be inserted.
void check_input(GraphDraft& graph, const PlanNode& node);

/// Reports each cycle of connected nodes as one problem; returns whether there is any.
bool check_cycles(GraphDraft& graph);

/// Reports, for a graph without cycles, a missing or second source, an output that no node takes,
/// and stages that could block each other within the memory budget.
void check_shape(GraphDraft& graph);

}  // namespace melflow
