// The sinks that are downstream of each node of a plan.
#pragma once

#include <cstddef>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/reach.h"

namespace melflow {

/// Covers only the first `nodes` nodes; a node that has no successor among them counts as a sink.
Reach plan_reach(const Plan& plan, std::size_t nodes);

}  // namespace melflow
