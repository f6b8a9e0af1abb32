// From a checked draft to a plan: nodes in order with their stages, several sources as one node.
#pragma once

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Sorts topologically, keeping the order of the description among nodes that are ready, and makes
/// the stages. Several sources become the first node, which lists the items of all and has an
/// output for each (docs/decisions/0020-several-sources.md). Takes the nodes out of `graph`.
Plan make_plan(GraphDraft& graph);

}  // namespace melflow
