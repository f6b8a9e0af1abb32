// Whether nodes make a graph: what each takes, and how they hang together. Nothing is made yet.
#pragma once

#include "pipeline/graph_draft.h"

namespace melflow {

/// That a connected node takes what it is given; not asked of one that is to be inserted.
void check_input(GraphDraft& graph, const NodeDraft& node);

/// One source, no output that nobody takes, no cycle, nothing that could not go on within the
/// memory budget.
void check_shape(GraphDraft& graph);

}  // namespace melflow
