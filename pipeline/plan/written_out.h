// Nodes that name a file which says what they are.
#pragma once

#include <vector>

#include "pipeline/plan/plan.h"

namespace melflow {

/// Puts what such nodes stand for in their place, as if it had been written. Adds what is wrong and
/// what is assumed.
GraphSpec written_out(const GraphSpec& graph, const Registry& registry, Problems& problems,
                      std::vector<Problem>& notes);

}  // namespace melflow
