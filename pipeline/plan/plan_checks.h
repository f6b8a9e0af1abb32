// Checks whether stages can work together: their requirements and properties, and the files
// that they make.
#pragma once

#include "pipeline/plan/plan.h"

namespace melflow {

/// Returns a collector for a stage's problems, with the node's position in the configuration.
PlanCheck check_of(Plan& plan, const PlanNode& node);

/// Passes requirements upstream from the sinks, then properties downstream from the source
/// (Stage::require, Stage::plan).
void check_stages(Plan& plan);

/// Reports a stage that needs the blocks of a file in order if they may arrive in another order.
void check_order(Plan& plan);
/// Reports stages that take only whole recordings but come after one that makes several of each.
void check_sub_items(Plan& plan);

/// Reports two nodes that make the same file.
void check_files(Plan& plan);

/// Warns of two nodes that do the same work on the same input.
void check_repeated_work(Plan& plan);

}  // namespace melflow
