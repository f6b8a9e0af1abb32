// Graphs with several sources. They run as one node, which lists the items of all and has an output
// for each: docs/decisions/0020-several-sources.md.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Returns their names as a list, "[train, extra]".
std::string all_sources(const GraphDraft& graph);

/// Reports sources that cannot be combined. Returns false if that does not depend on their options:
/// other problems of the graph's shape would only follow from it.
bool check_sources(GraphDraft& graph);

}  // namespace melflow
