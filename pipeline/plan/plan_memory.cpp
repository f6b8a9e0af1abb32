#include "pipeline/plan/plan_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/cpu.h"
#include "pipeline/base/sentences.h"
#include "pipeline/plan/plan_checks.h"

namespace melflow {
namespace {

// Stands for a file of unknown length when the needs of a block are added up: 64 TiB, so that sums
// and products with it do not overflow.
constexpr std::size_t kLargestFile = std::size_t{1} << 46;
const SourceInfo kLargest{"", kLargestFile};

// Bits of Origin::block for each of several stages in a row: they number the blocks that the stage
// cuts from one block, and suffice for any number of them.
constexpr std::size_t kBlockBits = 20;
static_assert(kBlockBits * kMostExpanding <= 60);

// The most bytes that reach a node for one block, given the largest outputs of the nodes in
// `bounds`; the sum over all inputs for a stage that pairs.
std::size_t bytes_in(const PlanNode& node, const std::vector<std::size_t>& bounds) {
  std::size_t out = 0;
  for (const PlanInput& from : node.inputs) {
    const std::size_t bytes = bounds[static_cast<std::size_t>(from.node)];
    out = node.info->traits.pairs ? out + bytes : std::max(out, bytes);
  }
  return out;
}

// Returns the largest output of each node for an item, in the order of the nodes.
std::vector<std::size_t> largest_blocks(const Plan& plan, const SourceInfo& item) {
  std::vector<std::size_t> bound(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    const std::size_t in = n.inputs.empty() ? item.bytes : bytes_in(n, bound);
    bound[i] = n.stage->output_bound(item, in);
  }
  return bound;
}

void report_unbounded(Plan& plan, const Mark& memory) {
  const std::vector<std::size_t> bound = largest_blocks(plan, kLargest);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.inputs.empty() || bound[i] < kLargestFile) continue;
    return plan.error(
        memory,
        fmt::format("memory.host: no amount is enough, since the output of {} ({}) grows with the "
                    "file; put a stage that limits the size of a block before the stages after it",
                    n.name, n.stage_name));
  }
}

// Names the least memory, and the options that limit stages' outputs, that of the largest first:
// "27MiB, or smaller blocks (segment.length, decode.block)".
std::string least_or_smaller(const Plan& plan) {
  const std::vector<std::size_t> bound = largest_blocks(plan, kLargest);
  std::vector<std::pair<std::size_t, std::string>> options;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    const std::string option = n.resources.size_option;
    if (!option.empty() && !n.inputs.empty() && !n.to.empty())
      options.emplace_back(bound[i], n.name + "." + option);
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [bytes, option] : options) out += (out.empty() ? " (" : ", ") + option;
  return fmt::format("{}, or smaller blocks{}", rounded_up(plan.least_memory),
                     out.empty() ? out : out + ")");
}

// Returns the node that cuts items into parts, or -1; marks the nodes that take parts.
int find_cutter(Plan& plan) {
  int cutter = -1;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    for (const PlanInput& in : n.inputs)
      n.takes_parts |=
          in.node == cutter || plan.nodes[static_cast<std::size_t>(in.node)].takes_parts;
    if (n.info->traits.cuts) cutter = static_cast<int>(i);
  }
  return cutter;
}

// Marks a node, and all after it, as downstream of one that yields several blocks for one.
void note_expanded(Plan& plan, int node) {
  PlanNode& n = plan.nodes[static_cast<std::size_t>(node)];
  if (std::exchange(n.is_behind_expanding, true)) return;
  for (const int to : n.to) note_expanded(plan, to);
}

// Returns the most nodes in a row that yield several blocks for one; sets in each the step of its
// block numbers and the memory kept for the later ones.
std::size_t expanding_in_a_row(Plan& plan, bool of_parts) {
  std::vector<std::size_t> behind(plan.nodes.size(), 0);  // per node, itself included
  std::size_t most = 0;
  for (std::size_t i = plan.nodes.size(); i-- > 0;) {
    PlanNode& n = plan.nodes[i];
    for (const int to : n.to) behind[i] = std::max(behind[i], behind[static_cast<std::size_t>(to)]);
    if (!n.info->traits.expands || n.takes_parts != of_parts) continue;
    n.block_step = std::uint64_t{1} << (kBlockBits * behind[i]);
    n.kept_behind = behind[i] * (of_parts ? plan.largest_part : plan.largest_block);
    most = std::max(most, ++behind[i]);
    for (const int to : n.to) note_expanded(plan, to);
  }
  return most;
}

std::string too_little_memory(const Plan& plan) {
  // So small a budget is probably a number without its unit.
  constexpr std::uint64_t kFewBytes = 64 << 10;
  if (plan.host_memory > 0 && plan.host_memory < kFewBytes) {
    const bool is_enough = plan.host_memory << 20 >= plan.least_memory;
    return fmt::format(
        "memory.host: {} is too little: this pipeline needs {}; a size without a unit is in "
        "bytes{}",
        Bytes{plan.host_memory}, least_or_smaller(plan),
        did_you_mean(fmt::format("{}{}", plan.host_memory, is_enough ? "MiB" : "GiB")));
  }
  return fmt::format("memory.host: {} is too little: this pipeline needs {}",
                     Bytes{plan.host_memory}, least_or_smaller(plan));
}

// Adds up the outputs of the nodes from `first` on; `bounds` has those of the nodes before. Parts
// are counted separately.
std::size_t sum_of_bounds(const Plan& plan, std::size_t first, bool of_parts,
                          const SourceInfo& source, std::vector<std::size_t>& bounds) {
  std::size_t total = 0;
  for (std::size_t i = first; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    bounds[i] = kNoBound;
    if (n.info->traits.kind == StageKind::sink || n.takes_parts != of_parts) continue;
    const std::size_t in = n.inputs.empty() ? source.bytes : bytes_in(n, bounds);
    bounds[i] = n.stage->output_bound(source, in);
    total += n.stage->keeps_of_stream(in);
    if (!n.info->traits.cuts && !n.inputs.empty() && !n.resources.passes_on) total += bounds[i];
  }
  return total;
}

// Reused because it is needed for every file.
std::vector<std::size_t>& work_space(const Plan& plan) {
  thread_local std::vector<std::size_t> bounds;
  bounds.resize(plan.nodes.size());
  return bounds;
}

// What an item needs of the budget.
struct Needs {
  std::size_t block = 0;  // the most that one of its blocks can need
  std::size_t part = 0;   // if a stage cuts it into parts: what a piece of a part needs after it
  void raise(const Needs& other) {
    block = std::max(block, other.block);
    part = std::max(part, other.part);
  }
};

Needs needs_of(const Plan& plan, int cutter, const SourceInfo& item) {
  const auto node = static_cast<std::size_t>(cutter);
  return {admission_cost(plan, item),
          cutter < 0 ? 0 : part_cost(plan, node, largest_blocks(plan, item)[node])};
}

void keep_for(Plan& plan, const Needs& largest) {
  plan.largest_block = largest.block;
  plan.largest_part = largest.part;
  plan.least_for_parts =
      largest.part == 0 ? 0 : (1 + expanding_in_a_row(plan, true)) * largest.part;
  plan.least_memory =
      (1 + expanding_in_a_row(plan, false)) * plan.largest_block + plan.least_for_parts;
}

// The least memory with which items like `item` can be finished.
std::size_t least_for(Plan& plan, int cutter, const SourceInfo& item) {
  keep_for(plan, needs_of(plan, cutter, item));
  return plan.least_memory;
}

std::string in_gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// The number of tasks in flight that share the budget.
std::size_t tasks_under_way(const Plan& plan) {
  constexpr std::size_t kPerWorker = 4;
  return kPerWorker * static_cast<std::size_t>(plan.workers + 1);
}

}  // namespace

std::size_t admission_cost(const Plan& plan, const SourceInfo& source,
                           std::vector<std::size_t>* bounds) {
  std::vector<std::size_t>& found = work_space(plan);
  const std::size_t cost = sum_of_bounds(plan, 0, false, source, found);
  if (bounds == nullptr) return cost;
  *bounds = found;
  // A payload may hold only some bytes of a file, while the report counts all of them.
  for (std::size_t& bound : *bounds) bound = std::max(bound, source.bytes);
  return cost;
}

std::size_t part_cost(const Plan& plan, std::size_t node, std::size_t bytes) {
  std::vector<std::size_t>& bounds = work_space(plan);
  bounds[node] = bytes;
  return bytes + sum_of_bounds(plan, node + 1, true, {"", bytes}, bounds);
}

void check_memory(Plan& plan, const Mark& memory) {
  if (!plan.problems.empty()) return;
  const int cutter = find_cutter(plan);
  const auto smallest = plan.nodes.front().faces.source->least_item();
  std::size_t least = smallest ? least_for(plan, cutter, *smallest) : kLargestFile;
  const Needs largest = needs_of(plan, cutter, kLargest);
  if (largest.block >= kLargestFile) return report_unbounded(plan, memory);
  keep_for(plan, largest);
  if (plan.least_memory <= plan.host_memory) least = plan.least_memory;
  if (least > plan.host_memory) return plan.error(memory, too_little_memory(plan));
  if (plan.least_memory > plan.host_memory)
    plan.notes.push_back(
        {memory,
         fmt::format("memory.host: {} is enough for short files only, and the run will look at "
                     "those of its list; files of any length need {}",
                     Bytes{plan.host_memory}, least_or_smaller(plan))});
  for (const PlanNode& n : plan.nodes) {
    if (n.faces.keeps == nullptr || n.is_inserted) continue;
    PlanCheck check = check_of(plan, n);
    n.faces.keeps->check_memory(plan.host_memory, least, check);
  }
}

std::size_t fit_to_items(Plan& plan) {
  SourceStage& source = *plan.nodes.front().faces.source;
  const int cutter = find_cutter(plan);
  Needs most;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < source.count();) {
    const SourceItem item = source.item(i);
    const Needs needs = needs_of(plan, cutter, item.info);
    if (needs.block > most.block) largest = i;
    most.raise(needs);
    i += item.records;
  }
  keep_for(plan, most);
  return largest;
}

std::string memory_remark(std::uint64_t host, const MemoryLimit& limit) {
  constexpr std::uint64_t kOfProgram = 64 << 20, kMiB = 1 << 20;  // beside the budget
  const bool is_of_group = !limit.file.empty();
  if (limit.bytes == 0 || host + (is_of_group ? kOfProgram : 0) <= limit.bytes) return {};
  if (!is_of_group)
    return fmt::format("memory.host: {} is more than this machine has ({})", in_gibibytes(host),
                       in_gibibytes(limit.bytes));
  const std::uint64_t most = limit.bytes - std::min(limit.bytes, kOfProgram);
  return fmt::format(
      "memory.host: {} and up to 64MiB for the program itself are more than its control group, as "
      "of a container or a job, allows ({}MiB, {}), so that the system may end it{}",
      Bytes{host}, limit.bytes / kMiB, limit.file,
      most < kMiB ? std::string() : fmt::format("; {}MiB fit", most / kMiB));
}

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
      first_source(plan).name, files, tasks_under_way(plan), Bytes{plan.host_memory}, most,
      Bytes{wanted / kMiB * kMiB});
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

void check_machine(Plan& plan, const GraphSpec& spec) {
  const std::size_t before = plan.warnings.size();
  if (spec.workers > plan.workers)
    plan.warnings.push_back(
        {{},
         fmt::format("workers: {} would only wait for each other on {} cores; the run has {}",
                     spec.workers, available_cpus(), plan.workers)});
  if (std::string text = memory_remark(spec.host_memory.count, memory_limit()); !text.empty())
    plan.warnings.push_back({spec.memory_mark, std::move(text)});
  if (plan.problems.empty())
    if (std::string text = too_many_files(plan); !text.empty())
      plan.notes.push_back({mark_of(first_source(plan), "files_per_task"), std::move(text)});
  std::move(plan.notes.begin(), plan.notes.end(), std::back_inserter(plan.warnings));
  plan.notes.clear();
  plan.machine_warnings = plan.warnings.size() - before;
}

}  // namespace melflow
