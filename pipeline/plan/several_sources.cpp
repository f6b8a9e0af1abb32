#include "pipeline/plan/several_sources.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace melflow {
namespace {

// Limit of the output numbers of a node (work.h).
constexpr std::size_t kMostSources = 1024;

std::string value_of(const NodeDraft& d, const std::string& option) {
  const Value all = d.config->schema().echo();
  const Value* value = all.find(option);
  return value == nullptr ? "" : value->is_scalar() ? value->text() : to_json(*value);
}

std::string files_per_task(const NodeDraft& d) {
  return d.common.files_per_task ? std::to_string(*d.common.files_per_task) : "auto";
}

void check_option(GraphDraft& graph, const NodeDraft& first, const NodeDraft& d,
                  const std::string& option, const std::string& there, const std::string& here) {
  if (there == here) return;
  const auto text = [](const std::string& value) {
    return value.empty() || value == "null" ? std::string("not set") : excerpt(value);
  };
  graph.error(
      mark_of(d.spec, option),
      fmt::format("{0}.{1}: is {2} here and {3} in {4}; it is the whole run's, so write the "
                  "same in all sources",
                  d.spec.name, option, text(here), text(there), first.spec.name));
}

// Returns a name that no written node has.
std::string name_for(const GraphDraft& graph) {
  std::string name = "sources";
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const NodeDraft& d) { return d.spec.name == name; }))
    name += '_';
  return name;
}

}  // namespace

std::vector<int> sources_of(const GraphDraft& graph) {
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    if (const StageInfo* info = graph.node(i).info;
        info != nullptr && info->traits.kind == StageKind::source)
      out.push_back(i);
  return out;
}

std::string all_sources(const GraphDraft& graph) {
  std::vector<std::string> names;
  for (const int i : sources_of(graph)) names.push_back(graph.node(i).spec.name);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

bool check_sources(GraphDraft& graph) {
  const std::vector<int> sources = sources_of(graph);
  if (sources.size() < 2) return true;
  const NodeDraft& first = graph.node(sources.front());
  for (const int i : sources) {
    const NodeDraft& d = graph.node(i);
    if (!d.info->options_of_run) {
      graph.error(
          d.spec.mark,
          fmt::format(
              "{}: {} cannot be combined with another source ({}); give it a pipeline of its own",
              d.spec.name, d.info->name,
              graph.node(sources[i == sources.front() ? 1 : 0]).spec.name));
      return false;
    }
    if (d.info != first.info) {
      graph.error(
          d.spec.mark,
          fmt::format("{}: the sources of a graph are of one stage, but this is {} and {} is "
                      "{}; give it a pipeline of its own",
                      d.spec.name, d.info->name, first.spec.name, first.info->name));
      return false;
    }
    if (d.spec.name.find('/') != std::string::npos)
      graph.error(d.spec.mark,
                  fmt::format("{}: with several sources the names of files begin with that of "
                              "their source and a slash, so it has none itself; rename the node",
                              d.spec.name));
    for (const std::string& option : *d.info->options_of_run)
      check_option(graph, first, d, option, value_of(first, option), value_of(d, option));
    check_option(graph, first, d, "files_per_task", files_per_task(first), files_per_task(d));
  }
  if (sources.size() > kMostSources)
    graph.error(graph.node(sources[kMostSources]).spec.mark,
                fmt::format("{}: a graph has at most {} sources, this is one more",
                            graph.node(sources[kMostSources]).spec.name, kMostSources));
  return true;
}

void unite_sources(const GraphDraft& graph, Plan& plan) {
  const PlanNode& first = plan.sources.front();
  PlanNode n;
  n.name = name_for(graph);
  n.written = first.name;
  n.mark = first.mark;
  n.is_inserted = true;
  n.info = first.info;
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

PlanCheck check_of(GraphDraft& graph, Plan& plan, const PlanNode& node) {
  const NodeSpec& spec = graph.spec_of(node);
  const auto text = [&spec](const std::string& option, const std::string& message) {
    std::string place = spec.name;
    if (!option.empty()) place.append(".").append(option);
    return place.append(": ").append(message);
  };
  return {[&graph, &spec, text](const std::string& option, const std::string& message) {
            graph.error(mark_of(spec, option), text(option, message));
          },
          [&plan, &spec, text](const std::string& option, const std::string& message) {
            plan.warnings.push_back({mark_of(spec, option), text(option, message)});
          },
          [&graph, &spec, text](const std::string& option, const std::string& message) {
            graph.notes.push_back({mark_of(spec, option), text(option, message)});
          }};
}

void merge_required(GraphDraft& graph, const Plan& plan, const PlanNode& node, int to,
                    const Requirements& more, Requirements& below) {
  for (const Requirements::Conflict& c : below.merge(more))
    graph.error(graph.spec_of(node).mark,
                fmt::format("{}: the branches after it want different values of {}: {} (from "
                            "'{}' on) and {}; each needs a stage of its own that makes it so",
                            node.name, c.name, c.other,
                            plan.nodes[static_cast<std::size_t>(to)].name, c.mine));
}

Properties plan_sources(GraphDraft& graph, Plan& plan, const std::vector<Requirements>& required) {
  PlanNode& united = plan.nodes.front();
  Requirements of_all;
  for (std::size_t k = 0; k < plan.sources.size(); ++k) {
    PlanNode& source = plan.sources[k];
    Requirements below;
    for (const int to : united.to) {
      const std::vector<PlanInput>& inputs = plan.nodes[static_cast<std::size_t>(to)].inputs;
      const Requirements& more = required[static_cast<std::size_t>(to)];
      if (std::any_of(inputs.begin(), inputs.end(), [k](const PlanInput& in) {
            return in.node == 0 && in.output == static_cast<int>(k);
          }))
        merge_required(graph, plan, source, to, more, below);
    }
    static_cast<void>(source.stage->require(below));
    PlanCheck check = check_of(graph, plan, source);
    static_cast<void>(source.stage->plan({}, below, check));
    // Branches of different sources may have different requirements.
    static_cast<void>(of_all.merge(below));
  }
  PlanCheck check = check_of(graph, plan, plan.sources.front());
  return united.stage->plan({}, united.stage->require(of_all), check);
}

}  // namespace melflow
