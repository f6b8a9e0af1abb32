// What a checked plan says of itself, for the output: the configuration as it was written, complete
// with what was left to us, and every node's feature settings.
#pragma once

#include "pipeline/plan.h"

namespace melflow {

void record_settings(const GraphSpec& spec, Plan& plan);

}  // namespace melflow
