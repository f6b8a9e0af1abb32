// Whether stages that are made can work together: what they require and give, the files they make,
// the memory they need.
#pragma once

#include "pipeline/graph_draft.h"

namespace melflow {

/// Requirements up from the sinks, then properties down from the source (Stage::require,
/// Stage::plan).
void check_stages(GraphDraft& graph, Plan& plan);

/// No two nodes make the same file.
void check_files(GraphDraft& graph, const Plan& plan);

/// The budget lets the largest block through. Works out what the plan says of it.
void check_memory(GraphDraft& graph, Plan& plan);

}  // namespace melflow
