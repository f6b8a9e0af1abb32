// Makes the settings that an output stores of a checked plan: the configuration with all automatic
// values filled in, and every node's feature settings.
#pragma once

#include "pipeline/plan.h"

namespace melflow {

void record_settings(const GraphSpec& spec, Plan& plan);

}  // namespace melflow
