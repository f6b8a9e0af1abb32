#include "pipeline/plan/graph_builder.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "pipeline/base/cpu.h"
#include "pipeline/base/warned_config_error.h"
#include "pipeline/plan/graph_checks.h"
#include "pipeline/plan/graph_draft.h"
#include "pipeline/plan/graph_expand.h"
#include "pipeline/plan/missing_nodes.h"
#include "pipeline/plan/plan_checks.h"
#include "pipeline/plan/plan_memory.h"
#include "pipeline/plan/plan_settings.h"
#include "pipeline/plan/several_sources.h"

namespace melflow {
namespace {

// Checks the graph as far as possible without making a stage.
GraphDraft draft_graph(const GraphSpec& spec, const Registry& registry) {
  GraphDraft graph{spec, registry};
  for (const NodeSpec& n : spec.nodes) expand_node(graph, n);
  for (PlanNode& d : graph.nodes) read_node(graph, d);
  graph.wrong_options = graph.problems.size();
  for (PlanNode& d : graph.nodes) connect(graph, d);
  if (check_cycles(graph)) return graph;    // other problems of its shape follow from that
  if (!check_sources(graph)) return graph;  // as above
  for (const PlanNode& d : graph.nodes) check_input(graph, d);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    if (graph.node(i).behind && graph.problems.empty()) insert_node(graph, i);
  check_shape(graph);
  return graph;
}

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

// Sorts topologically, and keeps the order of the description among nodes that are ready.
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
  const std::vector<int> sources = sources_of(graph);
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

// Whether stages can be made and connected although some options are wrong.
bool has_only_wrong_options(const GraphDraft& graph) {
  std::set<std::string> names;
  return graph.problems.size() == graph.wrong_options &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(), [&names](const PlanNode& d) {
           return d.config != nullptr && !d.behind && names.insert(d.name).second &&
                  (d.info->traits.kind == StageKind::source || !d.inputs.empty());
         });
}

// The node's name at the beginning of a message: "mel" for "mel.n_fft: ...".
std::string node_named(const std::string& message) {
  return message.substr(0, message.find_first_of(".:"));
}

// Returns further warnings on a graph in which only some options are wrong. The affected nodes use
// defaults instead and get no further messages.
std::vector<Problem> warnings_on_the_rest(GraphDraft& graph) {
  const std::vector<Problem> wrong = graph.problems.sorted();
  std::vector<Problem> out;
  try {
    Plan plan = make_plan(graph);
    plan.warnings = graph.unused.sorted();
    check_stages(plan);
    for (Problem& w : plan.warnings)
      if (std::none_of(wrong.begin(), wrong.end(), [&](const Problem& p) {
            return node_named(p.message) == node_named(w.message);
          }))
        out.push_back(std::move(w));
  } catch (const ConfigError&) {
    // Errors that follow from wrong options are redundant.
  }
  return out;
}

}  // namespace

Plan build_plan(const GraphSpec& written, const Registry& registry) {
  const GraphSpec spec = with_missing_nodes(written, registry);
  GraphDraft graph = draft_graph(spec, registry);
  if (!graph.problems.empty()) {
    std::vector<Problem> warnings =
        has_only_wrong_options(graph) ? warnings_on_the_rest(graph) : graph.unused.sorted();
    throw WarnedConfigError(std::move(graph.problems), std::move(warnings));
  }
  Plan plan = make_plan(graph);
  plan.warnings = graph.unused.sorted();
  check_stages(plan);
  check_order(plan);
  check_sub_items(plan);
  check_files(plan);
  check_repeated_work(plan);
  check_memory(plan, spec.memory_mark);
  check_machine(plan, spec);
  if (!plan.problems.empty())
    throw WarnedConfigError(std::move(plan.problems), std::move(plan.warnings));
  record_settings(spec, plan);
  return plan;
}

}  // namespace melflow
