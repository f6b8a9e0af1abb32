// Whether stages that are made can work together: the facts they agree on, the files they make, the
// memory they need.
#pragma once

#include "pipeline/graph_draft.h"

namespace melflow {

/// Demands up from the sinks, then offers down from the source (AnyStage::demand, AnyStage::plan).
void check_stages(GraphDraft& graph, Plan& plan);

/// No two nodes make the same file.
void check_files(GraphDraft& graph, const Plan& plan);

/// The budget lets the largest block through. Works out what the plan says of it.
void check_memory(GraphDraft& graph, Plan& plan);

}  // namespace melflow
