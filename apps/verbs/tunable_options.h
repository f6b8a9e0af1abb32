// Finds the options of a pipeline that change only its speed and can be edited in its file.
#pragma once

#include <vector>

#include "apps/profile/tuning.h"
#include "apps/verbs/plan_arguments.h"

namespace melflow {

/// Returns options of the run, and of nodes written in the file itself.
std::vector<TunableOption> tunable_options(const PlanArguments& arguments);

/// Returns the pipeline's file with these changes, each with a remark, and otherwise unchanged.
/// `remarks`: one for each change. Throws RunError where the text would be another pipeline.
std::string tuned_text(const PlanArguments& arguments, const Settings& changes,
                       const std::vector<std::string>& remarks);

}  // namespace melflow
