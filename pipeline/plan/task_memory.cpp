#include "pipeline/plan/task_memory.h"

#include <algorithm>

#include <fmt/format.h>

namespace melflow {
namespace {

// The number of tasks in flight that share the budget.
std::size_t tasks_under_way(const Plan& plan) {
  constexpr std::size_t kPerWorker = 4;
  return kPerWorker * static_cast<std::size_t>(plan.workers + 1);
}

}  // namespace

std::size_t task_memory(const Plan& plan, std::size_t budget) {
  return (budget - plan.least_for_parts) / tasks_under_way(plan);
}

std::string fewer_together(const Plan& plan, std::size_t most, std::size_t each, std::size_t kept) {
  const auto files = static_cast<std::size_t>(plan.nodes.front().files_per_task);
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const std::size_t wanted =
      kept + plan.least_for_parts + tasks_under_way(plan) * files * each + kMiB - 1;
  return fmt::format(
      "{}.files_per_task: {} files do not find room in a task, which may take 1/{} of memory.host "
      "({}): tasks have at most {}. Write a smaller number, or memory.host: {} for so many",
      first_source(plan).name, files, tasks_under_way(plan), to_text(Bytes{plan.host_memory}), most,
      to_text(Bytes{wanted / kMiB * kMiB}));
}

std::string too_many_files(const Plan& plan) {
  const PlanNode& source = plan.nodes.front();
  const auto files = static_cast<std::size_t>(source.files_per_task);
  const auto least = source.faces.source->least_item();
  if (files <= 1 || !least) return {};
  const std::size_t each = std::max<std::size_t>(admission_cost(plan, *least), 1);
  const std::size_t most = std::max<std::size_t>(task_memory(plan, plan.host_memory) / each, 1);
  return most < files ? fewer_together(plan, most, each, 0) : "";
}

}  // namespace melflow
