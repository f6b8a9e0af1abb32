// Makes an executable plan from a description of nodes; finds and reports every problem before
// anything starts.
#pragma once

#include "pipeline/plan/plan.h"

namespace melflow {

/// Makes the plan. Throws ConfigError with every problem of the spec.
Plan build_plan(const GraphSpec& written, const Registry& registry = Registry::global());

}  // namespace melflow
