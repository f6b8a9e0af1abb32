// How much memory the files of one task of the graph may take together.
#pragma once

#include <cstddef>
#include <string>

#include "pipeline/plan/plan.h"

namespace melflow {

/// Bytes for one task, of a budget of `budget` bytes.
std::size_t task_memory(const Plan& plan, std::size_t budget);
/// A warning that files_per_task has no effect, since only `most` files of `each` bytes find room
/// in a task. `kept`: the bytes of memory.host that are not in the budget.
std::string fewer_together(const Plan& plan, std::size_t most, std::size_t each, std::size_t kept);
/// The same before the run, by the least that a file can take; "" where files_per_task can be kept.
std::string too_many_files(const Plan& plan);

}  // namespace melflow
