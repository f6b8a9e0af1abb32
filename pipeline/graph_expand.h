// What written nodes stand for: chains of nodes, and nodes that a source has put into the graph.
#pragma once

#include <cstddef>

#include "pipeline/graph_draft.h"

namespace melflow {

/// Adds the nodes that a written one really is to `expanded`.
void expand_node(GraphDraft& graph, const NodeSpec& spec);

/// Puts node `index`, which has a `behind`, between two others; all nodes are connected and none is
/// wrong.
void insert_node(GraphDraft& graph, int index);

}  // namespace melflow
