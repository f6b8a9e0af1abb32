// The nodes that a node with a preset stands for.
#pragma once

#include <vector>

#include "pipeline/stage/registry.h"
#include "stages/front_ends.h"

namespace melflow {

/// Puts the other nodes of the preset's front end before and after those that the node `spec` of
/// the stage `stage` stands for by itself. Those before take recordings that are not cut yet, so
/// the nodes that mel and samples need follow them.
std::vector<NodeSpec> front_end_nodes(const NodeSpec& spec, std::string_view stage,
                                      std::vector<NodeSpec> own);

}  // namespace melflow
