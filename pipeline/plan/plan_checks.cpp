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

}  // namespace melflow
