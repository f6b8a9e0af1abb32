// The memory that items need of the budget: at least, in a task, and of the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/available_memory.h"
#include "pipeline/plan/plan.h"

namespace melflow {

/// The bound of a stage's output if it consists of parts, whose size is unknown before the cut.
inline constexpr std::size_t kNoBound = ~std::size_t{0};
/// The most bytes of the budget that one block of this source item can need, up to the stage that
/// cuts it into parts, if any. Fills `bounds`, unless null, with the most that each node may yield
/// of it, or kNoBound.
std::size_t admission_cost(const Plan& plan, const SourceInfo& source,
                           std::vector<std::size_t>* bounds = nullptr);
/// The most bytes of the budget that a piece of a part can need if `node` cuts it with `bytes`
/// bytes.
std::size_t part_cost(const Plan& plan, std::size_t node, std::size_t bytes);

/// Computes the memory that the largest blocks need. Reports a budget that is too small for any
/// item; notes one that is too small for the largest. `memory`: where the budget is written.
void check_memory(Plan& plan, const Mark& memory);
/// Lowers the memory that `plan` keeps to what the items of its source, which has started, need.
/// Returns the index of the one that needs most.
std::size_t fit_to_items(Plan& plan);

/// Adds the notes, and what this machine cannot give, to the warnings.
void check_machine(Plan& plan, const GraphSpec& spec);
/// Returns a warning if a budget of `host` bytes is more than the machine has or, with what the
/// program itself takes, than its control group allows; else "".
std::string memory_remark(std::uint64_t host, const MemoryLimit& limit);

/// Returns the bytes for one task out of a budget of `budget` bytes.
std::size_t task_memory(const Plan& plan, std::size_t budget);
/// Returns the warning that files_per_task has no effect, since only `most` files of `each` bytes
/// fit into a task. `kept`: the bytes of memory.host that are not in the budget.
std::string fewer_together(const Plan& plan, std::size_t most, std::size_t each, std::size_t kept);
/// Returns that warning before the run, for the smallest possible file; "" if the value is kept.
std::string too_many_files(const Plan& plan);

}  // namespace melflow
