// The sinks that each node of a plan leads to.
#pragma once

#include <cstddef>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/reach.h"

namespace melflow {

/// Of the first `nodes` nodes; those behind them are omitted, and a node without successors among
/// them counts as a sink.
Reach plan_reach(const Plan& plan, std::size_t nodes);

}  // namespace melflow
