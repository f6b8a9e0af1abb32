// Makes the settings that an output stores of a checked plan: the configuration with all defaults
// filled in and `auto` as it is where it depends on the machine, and every node's feature settings.
#pragma once

#include "pipeline/plan/plan.h"

namespace melflow {

void record_settings(const GraphSpec& spec, Plan& plan);

}  // namespace melflow
