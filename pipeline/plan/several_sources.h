// Graphs with several sources. They run as one node, which lists what all of them do and has an
// output for each: docs/decisions/0020-several-sources.md.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// The drafts that are sources, in the order in which they were written.
std::vector<int> sources_of(const GraphDraft& graph);

/// Their names as a list, "[train, extra]".
std::string all_sources(const GraphDraft& graph);

/// Reports sources that cannot stand beside each other. Returns false where that is so whatever
/// their options are: what else the graph's shape has would only follow from that.
bool check_sources(GraphDraft& graph);

/// Makes the first node of the plan of `plan.sources`, which are complete.
void unite_sources(const GraphDraft& graph, Plan& plan);

/// Calls the sources' require() and plan(), where there are several, and that of the node that is
/// made of them. `required`: of the nodes of the plan, but for the first. Returns what the first
/// one gives.
Properties plan_sources(GraphDraft& graph, Plan& plan, const std::vector<Requirements>& required);

/// What a stage has to say of its place in the plan, with the place of the node in the
/// configuration.
PlanCheck check_of(GraphDraft& graph, Plan& plan, const PlanNode& node);

/// Merges `more`, which the node `to` requires, into what the branches behind `node` require.
/// Reports contradictions.
void merge_required(GraphDraft& graph, const Plan& plan, const PlanNode& node, int to,
                    const Requirements& more, Requirements& below);

}  // namespace melflow
