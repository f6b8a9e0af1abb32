// Checks whether nodes make a graph: the input of each, and how they are connected. No stage is
// made yet.
#pragma once

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Reports a connected node that does not take what it is given. Not for nodes that are still to be
/// inserted.
void check_input(GraphDraft& graph, const NodeDraft& node);

/// Reports each cycle of connected nodes as one problem; returns whether there is any.
bool check_cycles(GraphDraft& graph);

/// Reports a graph, which has no cycle, that has no source or several, an output that no node
/// takes, or stages that could block each other within the memory budget.
void check_shape(GraphDraft& graph);

}  // namespace melflow
