// Puts the parts of a job together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/job/job.h"
#include "pipeline/plan/plan.h"

namespace melflow {

/// The plan of a run that makes the job's output of its parts: at the pipeline's path, or at `output`
/// unless that is "". Throws RunError that names the parts which are not done, and one that is of
/// another plan.
Plan merging_plan(const Job& job, std::optional<int> workers, const std::string& output);

/// "3, 7 to 9"
std::string parts_text(const Job& job, const std::vector<std::size_t>& parts);

}  // namespace melflow
