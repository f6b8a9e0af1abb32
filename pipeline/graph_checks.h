// Whether nodes make a graph: what each takes, and how they hang together. Nothing is made yet.
#pragma once

#include "pipeline/graph_draft.h"

namespace melflow {

/// That a connected node takes what it is given; not asked of one that is to be inserted.
void check_input(GraphDraft& graph, const NodeDraft& node);

/// Whether there is a cycle among connected nodes; each is one problem.
bool check_cycles(GraphDraft& graph);

/// One source, no output that nobody takes, nothing that could not go on within the memory budget;
/// asked of a graph without a cycle.
void check_shape(GraphDraft& graph);

}  // namespace melflow
