// Which options of a pipeline only change its speed and can be changed in its file.
#pragma once

#include <vector>

#include "apps/profile/tuning.h"
#include "apps/verbs/plan_arguments.h"

namespace melflow {

/// Options of the run and of nodes that stand in the file itself.
std::vector<TunableOption> tunable_options(const PlanArguments& arguments);

/// The pipeline's file with these changes, each with a warning, and otherwise as it was written.
/// `remarks`: one for each. Throws RunError where that text would be another pipeline.
std::string tuned_text(const PlanArguments& arguments, const Settings& changes,
                       const std::vector<std::string>& remarks);

}  // namespace melflow
