// Checks whether stages can work together: their requirements and properties, and the files
// that they make.
#pragma once

#include "pipeline/plan/graph_draft.h"

namespace melflow {

/// Passes requirements upstream from the sinks, then properties downstream from the source
/// (Stage::require, Stage::plan).
void check_stages(GraphDraft& graph, Plan& plan);

/// Reports a stage that needs the blocks of a file in order if they may arrive in another order.
void check_order(GraphDraft& graph, const Plan& plan);
/// Reports stages that take only whole recordings but come after one that makes several of each.
void check_sub_items(GraphDraft& graph, const Plan& plan);

/// Reports two nodes that make the same file.
void check_files(GraphDraft& graph, const Plan& plan);

/// Warns of two nodes that do the same work on the same input.
void check_repeated_work(const GraphDraft& graph, Plan& plan);

}  // namespace melflow
