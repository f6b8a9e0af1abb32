// Replaces written nodes by the chains of nodes that they stand for; inserts nodes for a source.
#pragma once

#include <cstddef>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Adds the nodes that a written node stands for; their options are not read yet.
void expand_node(GraphDraft& graph, const NodeSpec& spec);

/// Inserts node `index`, which has a `behind`, between two others. All nodes must be connected and
/// without problems.
void insert_node(GraphDraft& graph, int index);

}  // namespace melflow
