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
  for (NodeDraft& d : graph.nodes) read_node(graph, d);
  graph.wrong_options = graph.problems.size();
  for (NodeDraft& d : graph.nodes) connect(graph, d);
  if (check_cycles(graph)) return graph;    // other problems of its shape follow from that
  if (!check_sources(graph)) return graph;  // as above
  for (const NodeDraft& d : graph.nodes) check_input(graph, d);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    if (graph.node(i).behind && graph.problems.empty()) insert_node(graph, i);
  check_shape(graph);
  return graph;
}

void set_bounds(PlanNode& n, const NodeOptions& options, const Plan& plan) {
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

PlanNode make_node(const GraphDraft& graph, NodeDraft& d, std::vector<PlanInput> inputs,
                   const Plan& plan) {
  PlanNode n;
  n.name = d.spec.name;
  n.written = graph.spec.nodes[d.written].name;
  n.mark = d.spec.mark;
  n.options = d.spec.options;
  n.is_inserted = d.behind.has_value();
  n.info = d.info;
  n.config = std::move(d.config);
  n.stage = n.config->make();
  n.faces = StageFaces(*n.stage);
  n.resources = n.stage->resources();
  n.inputs = std::move(inputs);
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
  n.outputs = d.outputs;
  if (!d.from.empty()) n.port = graph.port_of(d.from.front());
  if (n.faces.passes != nullptr) n.faces.passes->set_port(n.port);
  n.fails_branch = d.common.on_failure
                       ? *d.common.on_failure == OnFailure::branch
                       : std::any_of(n.inputs.begin(), n.inputs.end(), [&](const PlanInput& in) {
                           return plan.nodes[static_cast<std::size_t>(in.node)].fails_branch;
                         });
  set_bounds(n, d.common, plan);
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
  if (are_several) {
    for (const int s : sources) {
      place[static_cast<std::size_t>(s)] = 0;
      plan.sources.push_back(make_node(graph, graph.nodes[static_cast<std::size_t>(s)], {}, plan));
    }
    unite_sources(graph, plan);
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
      NodeDraft& d = graph.nodes[i];
      if (place[i] >= 0) continue;
      std::vector<PlanInput> inputs(d.from.size());
      std::transform(d.from.begin(), d.from.end(), inputs.begin(), input_of);
      if (std::any_of(inputs.begin(), inputs.end(), [](const auto& in) { return in.node < 0; }))
        continue;
      place[i] = static_cast<int>(plan.nodes.size());
      for (const PlanInput& in : inputs) {
        std::vector<int>& to = plan.nodes[static_cast<std::size_t>(in.node)].to;
        if (std::find(to.begin(), to.end(), place[i]) == to.end()) to.push_back(place[i]);
      }
      plan.nodes.push_back(make_node(graph, d, std::move(inputs), plan));
    }
  }
  return plan;
}

// Whether stages can be made and connected although some options are wrong.
bool has_only_wrong_options(const GraphDraft& graph) {
  std::set<std::string> names;
  return graph.problems.size() == graph.wrong_options &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(), [&names](const NodeDraft& d) {
           return d.config != nullptr && !d.behind && names.insert(d.spec.name).second &&
                  (d.info->traits.kind == StageKind::source || !d.from.empty());
         });
}

[[noreturn]] void throw_problems(GraphDraft& graph, std::vector<Problem> warnings) {
  throw WarnedConfigError(std::move(graph.problems), std::move(warnings));
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
    check_stages(graph, plan);
    for (Problem& w : plan.warnings)
      if (std::none_of(wrong.begin(), wrong.end(), [&](const Problem& p) {
            return node_named(p.message) == node_named(w.message);
          }))
        out.push_back(std::move(w));
  } catch (const ConfigError&) {
    // Errors that follow from wrong options are redundant.
  }
  graph.problems = {};
  for (const Problem& p : wrong) graph.problems.add(p.mark, p.message);
  return out;
}

}  // namespace

Plan build_plan(const GraphSpec& written, const Registry& registry) {
  const GraphSpec spec = with_missing_nodes(written, registry);
  GraphDraft graph = draft_graph(spec, registry);
  if (!graph.problems.empty())
    throw_problems(
        graph, has_only_wrong_options(graph) ? warnings_on_the_rest(graph) : graph.unused.sorted());
  Plan plan = make_plan(graph);
  plan.warnings = graph.unused.sorted();
  check_stages(graph, plan);
  check_order(graph, plan);
  check_sub_items(graph, plan);
  check_files(graph, plan);
  check_repeated_work(graph, plan);
  check_memory(graph, plan);
  if (spec.workers > plan.workers) {
    plan.warnings.push_back(
        {{},
         fmt::format("workers: {} would only wait for each other on {} cores; the run has {}",
                     spec.workers, available_cpus(), plan.workers)});
    plan.machine_warnings = 1;
  }
  if (std::string text = memory_remark(spec.host_memory.count, memory_limit()); !text.empty()) {
    plan.warnings.push_back({spec.memory_mark, std::move(text)});
    ++plan.machine_warnings;
  }
  if (graph.problems.empty())
    if (std::string text = too_many_files(plan); !text.empty())
      graph.notes.push_back(
          {mark_of(graph.spec_of(first_source(plan)), "files_per_task"), std::move(text)});
  plan.machine_warnings += graph.notes.size();
  std::move(graph.notes.begin(), graph.notes.end(), std::back_inserter(plan.warnings));
  if (!graph.problems.empty()) throw_problems(graph, std::move(plan.warnings));
  record_settings(spec, plan);
  return plan;
}

}  // namespace melflow
