// Records the settings of a checked plan that an output stores: the configuration with all
// defaults, but `auto` unchanged if it depends on the machine, and each node's feature settings.
#pragma once

#include "pipeline/plan/plan.h"

namespace melflow {

void record_settings(const GraphSpec& spec, Plan& plan);

}  // namespace melflow
