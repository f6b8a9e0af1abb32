// The memory that the files of one task of the graph may take together.
#pragma once

#include <cstddef>
#include <string>

#include "pipeline/plan/plan.h"

namespace melflow {

/// Returns the bytes for one task out of a budget of `budget` bytes.
std::size_t task_memory(const Plan& plan, std::size_t budget);
/// Returns the warning that files_per_task has no effect, since only `most` files of `each` bytes
/// fit into a task. `kept`: the bytes of memory.host that are not in the budget.
std::string fewer_together(const Plan& plan, std::size_t most, std::size_t each, std::size_t kept);
/// Returns that warning before the run, for the smallest possible file; "" if the value is kept.
std::string too_many_files(const Plan& plan);

}  // namespace melflow
