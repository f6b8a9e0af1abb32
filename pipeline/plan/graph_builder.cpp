#include "pipeline/plan/graph_builder.h"

#include <algorithm>
#include <set>

#include "pipeline/base/warned_config_error.h"
#include "pipeline/plan/graph_checks.h"
#include "pipeline/plan/graph_draft.h"
#include "pipeline/plan/graph_expand.h"
#include "pipeline/plan/make_plan.h"
#include "pipeline/plan/missing_nodes.h"
#include "pipeline/plan/plan_checks.h"
#include "pipeline/plan/plan_memory.h"
#include "pipeline/plan/plan_settings.h"
#include "pipeline/plan/several_sources.h"
#include "pipeline/plan/written_out.h"

namespace melflow {
namespace {

// Checks the graph as far as possible without making a stage.
GraphDraft draft_graph(const GraphSpec& spec, const Registry& registry) {
  GraphDraft graph{spec, registry};
  for (const NodeSpec& n : spec.nodes) expand_node(graph, n);
  for (PlanNode& d : graph.nodes) read_node(graph, d);
  graph.find_sources();
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
  Problems problems;
  std::vector<Problem> notes;
  const GraphSpec spec =
      with_missing_nodes(written_out(written, registry, problems, notes), registry);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  GraphDraft graph = draft_graph(spec, registry);
  if (!graph.problems.empty()) {
    std::vector<Problem> warnings =
        has_only_wrong_options(graph) ? warnings_on_the_rest(graph) : graph.unused.sorted();
    throw WarnedConfigError(std::move(graph.problems), std::move(warnings));
  }
  Plan plan = make_plan(graph);
  plan.warnings = std::move(notes);
  for (Problem& unused : graph.unused.sorted()) plan.warnings.push_back(std::move(unused));
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
