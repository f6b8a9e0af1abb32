#include "pipeline/plan/plan_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "pipeline/base/sentences.h"
#include "pipeline/plan/several_sources.h"
#include "pipeline/stage/paired_inputs.h"

namespace melflow {
namespace {

// Stands for a file of unknown length when the needs of a block are added up: 64 TiB, so that sums
// and products with it do not overflow.
constexpr std::size_t kLargestFile = std::size_t{1} << 46;

// Bits of Origin::block for the blocks that one of several stages in a row cuts from one block;
// none ever cuts that many.
constexpr std::size_t kBlockBits = 20;
static_assert(kBlockBits * kMostExpanding <= 60);

// Returns the requirements of each node, except for a node that unites several sources.
std::vector<Requirements> requirements_of(GraphDraft& graph, const Plan& plan) {
  std::vector<Requirements> all(plan.nodes.size());
  for (std::size_t i = plan.nodes.size(); i-- > (plan.sources.empty() ? 0U : 1U);) {
    const PlanNode& n = plan.nodes[i];
    Requirements below;
    for (int to : n.to)
      merge_required(graph, plan, n, to, all[static_cast<std::size_t>(to)], below);
    all[i] = n.stage->require(below);
  }
  return all;
}

// Returns the largest output of each node, in the order of the nodes.
std::vector<std::size_t> largest_blocks(const Plan& plan) {
  std::vector<std::size_t> bound(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    const std::size_t in = n.inputs.empty() ? kLargestFile : bytes_in(n, bound);
    bound[i] = n.stage->output_bound({"", kLargestFile}, in);
  }
  return bound;
}

void report_unbounded(GraphDraft& graph, const Plan& plan) {
  const std::vector<std::size_t> bound = largest_blocks(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.inputs.empty() || bound[i] < kLargestFile) continue;
    return graph.error(
        graph.spec.memory_mark,
        fmt::format("memory.host: no amount is enough, since the output of {} ({}) grows with the "
                    "file; put a stage that limits the size of a block before the stages after it",
                    n.name, graph.stage_of(n)));
  }
}

// Lists the options that limit stages' outputs, that of the largest first: " (segment.length,
// decode.block)".
std::string size_options(const Plan& plan) {
  const std::vector<std::size_t> bound = largest_blocks(plan);
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
  return out.empty() ? out : out + ")";
}

}  // namespace

void check_stages(GraphDraft& graph, Plan& plan) {
  const std::vector<Requirements> required = requirements_of(graph, plan);
  std::vector<Properties> properties(plan.nodes.size());
  if (!plan.sources.empty()) properties[0] = plan_sources(graph, plan, required);
  for (std::size_t i = plan.sources.empty() ? 0 : 1; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    PlanCheck check = check_of(graph, plan, n);
    Requirements below;
    for (int to : n.to) (void)below.merge(required[static_cast<std::size_t>(to)]);
    Properties given;
    if (!n.inputs.empty()) given = properties[static_cast<std::size_t>(n.from())];
    for (const PlanInput& in : n.inputs)
      given.keep_equal(properties[static_cast<std::size_t>(in.node)]);
    if (PairedInputs* paired = n.faces.paired; paired != nullptr) {
      std::vector<PairedInputs::Input> inputs;
      for (const PlanInput& in : n.inputs)
        inputs.push_back({plan.nodes[static_cast<std::size_t>(in.node)].written,
                          properties[static_cast<std::size_t>(in.node)]});
      paired->set_inputs(std::move(inputs));
    }
    properties[i] = n.stage->plan(given, below, check);
  }
}

// The order of the blocks of a file in a node's output.
struct Blocks {
  bool are_several = false;
  const PlanNode* mixed_by = nullptr;  // the node that may reorder them, if any
};

void check_order(GraphDraft& graph, const Plan& plan) {
  std::vector<Blocks> given(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    const StageTraits& traits = n.stage->traits();
    Blocks& own = given[i];
    for (const PlanInput& in : n.inputs) {
      const Blocks& up = given[static_cast<std::size_t>(in.node)];
      own.are_several |= up.are_several;
      if (own.mixed_by == nullptr) own.mixed_by = up.mixed_by;
    }
    if (own.mixed_by != nullptr && traits.order == BlockOrder::needed)
      graph.error(
          mark_of(graph.spec_of(n), "from"),
          fmt::format("{}.from: {} takes the blocks of a file in order, but {} ({}) before it lets "
                      "them overtake each other; put {} before {}",
                      n.name, graph.stage_of(n), own.mixed_by->name, graph.stage_of(*own.mixed_by),
                      n.name, own.mixed_by->name));
    if (own.are_several && own.mixed_by == nullptr && traits.order == BlockOrder::any)
      own.mixed_by = &n;
    own.are_several |= traits.expands || traits.cuts;
  }
}

void check_sub_items(GraphDraft& graph, const Plan& plan) {
  for (const PlanNode& n : plan.nodes) {
    if (!n.stage->gets_sub_items() || n.stage->traits().takes_sub_items) continue;
    const PlanNode* divider = &n;
    while (!divider->info->traits.divides)
      for (const PlanInput& in : divider->inputs)
        if (const PlanNode& up = plan.nodes[static_cast<std::size_t>(in.node)];
            up.info->traits.divides || up.stage->gets_sub_items()) {
          divider = &up;
          break;
        }
    if (n.is_inserted) {
      graph.error(
          graph.spec_of(n).mark,
          fmt::format("{}: {} takes whole recordings, but {} ({}) before it makes several items "
                      "of each; remove the option of the source that puts it there",
                      n.name, graph.stage_of(n), divider->name, graph.stage_of(*divider)));
      continue;
    }
    graph.error(
        mark_of(graph.spec_of(n), "from"),
        fmt::format("{}.from: {} takes whole recordings, but {} ({}) before it makes several "
                    "items of each; put {} before {}",
                    n.name, graph.stage_of(n), divider->name, graph.stage_of(*divider), n.name,
                    divider->name));
  }
}

// Two nodes that make the same file would overwrite it.
void check_files(GraphDraft& graph, const Plan& plan) {
  std::map<std::string, const PlanNode*> makers;
  for (const PlanNode& n : plan.nodes) {
    for (const std::string& path : n.resources.files_made) {
      if (path.empty()) continue;
      const auto [it, is_first] =
          makers.try_emplace(std::filesystem::absolute(path).lexically_normal().string(), &n);
      if (is_first) continue;
      graph.error(mark_of(graph.spec_of(n), "path"),
                  fmt::format("{}: {} is also written by {} ({}); give it another path", n.name,
                              path, it->second->name, graph.stage_of(*it->second)));
      break;
    }
  }
}

// Skips sinks, which write different files. Nodes that differ only in tuning options or in
// on_failure may be intended.
void check_repeated_work(const GraphDraft& graph, Plan& plan) {
  std::map<std::string, const PlanNode*> workers;
  for (const PlanNode& n : plan.nodes) {
    if (n.inputs.empty() || n.to.empty() || n.is_inserted || n.written != n.name) continue;
    std::string work = n.info->name + (n.fails_branch ? " alone" : "");
    for (const PlanInput& in : n.inputs) work += fmt::format(" {}.{}", in.node, in.output);
    const auto [it, is_first] =
        workers.try_emplace(work + to_json(n.config->schema().echo(false)), &n);
    if (is_first) continue;
    const NodeSpec& spec = graph.spec_of(n);
    plan.warnings.push_back(
        {spec.mark,
         fmt::format("{}: does again what {} (line {}) does with the same input; what "
                     "takes {} can take {}",
                     n.name, it->second->name, it->second->mark.line, n.name, it->second->name)});
  }
}

namespace {

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
  const std::string least = rounded_up(plan.least_memory);
  // So small a budget is probably a number without its unit.
  constexpr std::uint64_t kFewBytes = 64 << 10;
  if (plan.host_memory > 0 && plan.host_memory < kFewBytes) {
    const bool is_enough = plan.host_memory << 20 >= plan.least_memory;
    return fmt::format(
        "memory.host: {} is too little: this pipeline needs {} at least; a size without a unit is "
        "in bytes{}",
        to_text(Bytes{plan.host_memory}), least,
        did_you_mean(fmt::format("{}{}", plan.host_memory, is_enough ? "MiB" : "GiB")));
  }
  return fmt::format(
      "memory.host: {} is too little: this pipeline needs {} at least; set that, or make blocks "
      "smaller{}",
      to_text(Bytes{plan.host_memory}), least, size_options(plan));
}

std::string in_gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

void check_memory(GraphDraft& graph, Plan& plan) {
  if (!graph.problems.empty()) return;
  const int cutter = find_cutter(plan);
  plan.largest_block = admission_cost(plan, {"", kLargestFile});
  if (plan.largest_block >= kLargestFile) return report_unbounded(graph, plan);
  if (cutter >= 0) {
    const auto node = static_cast<std::size_t>(cutter);
    plan.largest_part = part_cost(plan, node, largest_blocks(plan)[node]);
    plan.least_for_parts = (1 + expanding_in_a_row(plan, true)) * plan.largest_part;
  }
  plan.least_memory =
      (1 + expanding_in_a_row(plan, false)) * plan.largest_block + plan.least_for_parts;
  if (plan.least_memory > plan.host_memory)
    return graph.error(graph.spec.memory_mark, too_little_memory(plan));
  for (const PlanNode& n : plan.nodes) {
    if (n.faces.keeps == nullptr || n.is_inserted) continue;
    PlanCheck check = check_of(graph, plan, n);
    n.faces.keeps->check_memory(plan.host_memory, plan.least_memory, check);
  }
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
      "of "
      "a container or a job, allows ({}MiB, {}), so that the system may end it{}",
      to_text(Bytes{host}), limit.bytes / kMiB, limit.file,
      most < kMiB ? std::string() : fmt::format("; {}MiB fit", most / kMiB));
}

}  // namespace melflow
