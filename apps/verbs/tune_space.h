// Which options of a pipeline `melflow tune` tries other values of.
#pragma once

#include <vector>

#include "apps/profile/search.h"
#include "apps/verbs/plan_arguments.h"

namespace melflow {

/// Of nodes that were written in the file itself; without what the command line sets. Throws
/// ConfigError.
std::vector<SearchedOption> searched_options(const PlanArguments& arguments);

}  // namespace melflow
