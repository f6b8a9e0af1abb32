// From a description of nodes to a plan that can run: every problem is found and reported before
// anything starts.
#pragma once

#include "pipeline/plan.h"

namespace melflow {

/// Throws ConfigError with every problem of the spec.
Plan build_plan(const GraphSpec& spec, const Registry& registry = Registry::global());

}  // namespace melflow
