// The current state of each node of a run, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// A line for each node, of at most `width` ASCII characters: the share of its slots that were busy
/// between the two points in time, and how many items wait before it; the busiest one is marked.
/// None where one of the points has no nodes.
std::vector<std::string> stage_lines(const Plan& plan, const RunSample& before,
                                     const RunSample& now, int width);

}  // namespace melflow
