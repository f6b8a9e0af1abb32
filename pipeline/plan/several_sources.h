// Graphs with several sources. They run as one node, which lists the items of all and has an output
// for each: docs/decisions/0020-several-sources.md.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Returns the drafts that are sources, in the order in which they were written.
std::vector<int> sources_of(const GraphDraft& graph);

/// Returns their names as a list, "[train, extra]".
std::string all_sources(const GraphDraft& graph);

/// Reports sources that cannot be combined. Returns false if that does not depend on their options:
/// other problems of the graph's shape would only follow from it.
bool check_sources(GraphDraft& graph);

/// Returns a name for the node that unites them, which no other node has.
std::string name_of_sources(const GraphDraft& graph);

/// Makes the first node of the plan, called `name`, from the complete nodes in `plan.sources`.
void unite_sources(Plan& plan, std::string name);

}  // namespace melflow
