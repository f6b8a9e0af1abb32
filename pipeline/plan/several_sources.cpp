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

std::string value_of(const PlanNode& d, const std::string& option) {
  const Value all = d.config->schema().echo();
  const Value* value = all.find(option);
  return value == nullptr ? "" : value->is_scalar() ? value->text() : to_json(*value);
}

std::string files_per_task(const PlanNode& d) {
  return d.common.files_per_task ? std::to_string(*d.common.files_per_task) : "auto";
}

void check_option(GraphDraft& graph, const PlanNode& first, const PlanNode& d,
                  const std::string& option, const std::string& there, const std::string& here) {
  if (there == here) return;
  const auto text = [](const std::string& value) {
    return value.empty() || value == "null" ? std::string("not set") : excerpt(value);
  };
  graph.error(
      mark_of(d, option),
      fmt::format("{0}.{1}: is {2} here and {3} in {4}; it is the whole run's, so write the "
                  "same in all sources",
                  d.name, option, text(here), text(there), first.name));
}

}  // namespace

std::string all_sources(const GraphDraft& graph) {
  std::vector<std::string> names;
  for (const int i : graph.sources) names.push_back(graph.node(i).name);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

bool check_sources(GraphDraft& graph) {
  const std::vector<int>& sources = graph.sources;
  if (sources.size() < 2) return true;
  const PlanNode& first = graph.node(sources.front());
  for (const int i : sources) {
    const PlanNode& d = graph.node(i);
    if (!d.info->options_of_run) {
      graph.error(
          d.mark,
          fmt::format(
              "{}: {} cannot be combined with another source ({}); give it a pipeline of its own",
              d.name, d.info->name, graph.node(sources[i == sources.front() ? 1 : 0]).name));
      return false;
    }
    if (d.info != first.info) {
      graph.error(
          d.mark,
          fmt::format("{}: the sources of a graph are of one stage, but this is {} and {} is "
                      "{}; give it a pipeline of its own",
                      d.name, d.info->name, first.name, first.info->name));
      return false;
    }
    if (d.name.find('/') != std::string::npos)
      graph.error(d.mark,
                  fmt::format("{}: with several sources the names of files begin with that of "
                              "their source and a slash, so it has none itself; rename the node",
                              d.name));
    for (const std::string& option : *d.info->options_of_run)
      check_option(graph, first, d, option, value_of(first, option), value_of(d, option));
    check_option(graph, first, d, "files_per_task", files_per_task(first), files_per_task(d));
  }
  if (sources.size() > kMostSources)
    graph.error(graph.node(sources[kMostSources]).mark,
                fmt::format("{}: a graph has at most {} sources, this is one more",
                            graph.node(sources[kMostSources]).name, kMostSources));
  return true;
}

}  // namespace melflow
