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

/// Makes the first node of the plan from the complete nodes in `plan.sources`.
void unite_sources(const GraphDraft& graph, Plan& plan);

/// Calls require() and plan() of the sources, if there are several, and of the node that unites
/// them. `required`: the requirements of all nodes but the first. Returns the first node's
/// properties.
Properties plan_sources(GraphDraft& graph, Plan& plan, const std::vector<Requirements>& required);

/// Returns a collector for a stage's problems, with the node's position in the configuration.
PlanCheck check_of(GraphDraft& graph, Plan& plan, const PlanNode& node);

/// Merges `more`, the requirements of the node `to`, into those of the branches after `node`.
/// Reports contradictions.
void merge_required(GraphDraft& graph, const Plan& plan, const PlanNode& node, int to,
                    const Requirements& more, Requirements& below);

}  // namespace melflow
