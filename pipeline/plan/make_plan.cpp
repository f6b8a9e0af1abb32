#include "pipeline/plan/make_plan.h"

#include <algorithm>
#include <utility>

#include "pipeline/base/cpu.h"

namespace melflow {
namespace {

void set_bounds(PlanNode& n, const Plan& plan) {
  const NodeOptions& options = n.common;
  const int limit = n.info->traits.max_concurrency;
  const int by_stage = n.resources.default_concurrency;
  n.concurrency = options.concurrency.value_or(limit > 0      ? limit
                                               : by_stage > 0 ? by_stage
                                                              : plan.workers);
  // A stage starts an item only if the next queue has room: a shorter queue would hold it back.
  int before = 1;
  for (const PlanInput& in : n.inputs)
    before = std::max(before, plan.nodes[static_cast<std::size_t>(in.node)].concurrency);
  n.queue = options.queue.value_or(std::max(2 * n.concurrency, before));
  n.start_at = options.start_at;
  n.max_failures = options.max_failures;
  n.files_per_task = options.files_per_task.value_or(0);
}

// Makes the stage of a node whose inputs are in the plan.
PlanNode complete(PlanNode n, const Plan& plan) {
  n.is_inserted = n.behind.has_value();
  n.stage = n.config->make();
  n.faces = StageFaces(*n.stage);
  n.resources = n.stage->resources();
  for (const PlanInput& in : n.inputs)
    if (const int waits = plan.nodes[static_cast<std::size_t>(in.node)].resources.waits_for;
        waits > 0 && !n.resources.passes_on) {
      n.resources.blocking = true;
      n.resources.default_concurrency = std::max(n.resources.default_concurrency, waits);
    }
  n.stage->set_gets_sub_items(
      std::any_of(n.inputs.begin(), n.inputs.end(), [&plan](const PlanInput& in) {
        const Stage& up = *plan.nodes[static_cast<std::size_t>(in.node)].stage;
        return up.gets_sub_items() || up.traits().divides;
      }));
  if (n.faces.passes != nullptr) n.faces.passes->set_port(n.port);
  n.fails_branch = n.common.on_failure
                       ? *n.common.on_failure == OnFailure::branch
                       : std::any_of(n.inputs.begin(), n.inputs.end(), [&](const PlanInput& in) {
                           return plan.nodes[static_cast<std::size_t>(in.node)].fails_branch;
                         });
  set_bounds(n, plan);
  return n;
}

// Returns a name for the node that unites the sources, which no other node has.
std::string name_of_sources(const GraphDraft& graph) {
  std::string name = "sources";
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const PlanNode& d) { return d.name == name; }))
    name += '_';
  return name;
}

// Makes the first node of the plan from the complete nodes in `plan.sources`.
void unite_sources(Plan& plan, std::string name) {
  const PlanNode& first = plan.sources.front();
  PlanNode n;
  n.name = std::move(name);
  n.written = first.name;
  n.mark = first.mark;
  n.is_inserted = true;
  n.info = first.info;
  n.stage_name = first.info->name;
  n.options = Value::map({}, first.mark);
  n.config = n.info->configure();
  std::vector<UnitesSources::Named> all;
  for (const PlanNode& source : plan.sources) {
    n.outputs.push_back(source.name);
    all.push_back({source.name, source.faces.source});
  }
  n.stage = first.faces.unites->unite(all);
  n.faces = StageFaces(*n.stage);
  n.resources = n.stage->resources();
  n.concurrency = first.concurrency;
  n.files_per_task = first.files_per_task;
  plan.nodes.push_back(std::move(n));
}

}  // namespace

Plan make_plan(GraphDraft& graph) {
  Plan plan;
  plan.host_memory = graph.spec.host_memory.count;
  plan.settings.host_memory = plan.host_memory;
  plan.settings.pinned_memory = graph.spec.pinned_memory.count;
  plan.settings.device_memory = graph.spec.device_memory.count;
  plan.max_failures = graph.spec.max_failures;
  plan.workers =
      graph.spec.workers > 0 ? std::min(graph.spec.workers, most_workers()) : available_cpus();
  std::vector<int> place(graph.nodes.size(), -1);
  const std::vector<int>& sources = graph.sources;
  const bool are_several = sources.size() > 1;
  for (PlanNode& n : graph.nodes)
    if (!n.inputs.empty()) n.port = graph.port_of(n.inputs.front());
  if (are_several) {
    std::string name = name_of_sources(graph);
    for (const int s : sources) {
      place[static_cast<std::size_t>(s)] = 0;
      plan.sources.push_back(complete(std::move(graph.nodes[static_cast<std::size_t>(s)]), plan));
    }
    unite_sources(plan, std::move(name));
  }
  // Returns the input's position in the plan; -1 if its node is not there yet.
  const auto input_of = [&](const PlanInput& in) -> PlanInput {
    const auto source = std::find(sources.begin(), sources.end(), in.node);
    const bool is_output = are_several && source != sources.end();
    return {place[static_cast<std::size_t>(in.node)],
            is_output ? static_cast<int>(source - sources.begin()) : in.output};
  };
  while (std::find(place.begin(), place.end(), -1) != place.end()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      PlanNode& n = graph.nodes[i];
      if (place[i] >= 0) continue;
      std::vector<PlanInput> inputs(n.inputs.size());
      std::transform(n.inputs.begin(), n.inputs.end(), inputs.begin(), input_of);
      if (std::any_of(inputs.begin(), inputs.end(), [](const auto& in) { return in.node < 0; }))
        continue;
      place[i] = static_cast<int>(plan.nodes.size());
      for (const PlanInput& in : inputs) {
        std::vector<int>& to = plan.nodes[static_cast<std::size_t>(in.node)].to;
        if (std::find(to.begin(), to.end(), place[i]) == to.end()) to.push_back(place[i]);
      }
      n.inputs = std::move(inputs);
      plan.nodes.push_back(complete(std::move(n), plan));
    }
  }
  return plan;
}

}  // namespace melflow
