// Applies --set: options on the command line override those in the file.
#pragma once

#include <vector>

#include "config/variables.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"

namespace melflow {

/// Applies `sets` to `root`, in order. A name that leads to no node or top-level option is a
/// problem; the plan checks later whether the node's stage has the option.
void apply_overrides(Value& root, const std::vector<Assignment>& sets, Problems& problems);

}  // namespace melflow
