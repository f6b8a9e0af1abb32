#include "pipeline/plan/meeting_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/plan/input_advice.h"
#include "pipeline/plan/several_sources.h"

namespace melflow {
namespace {

// Stands for a node before all sources, with an output for each.
constexpr int kAllSources = -1;

// Returns the nodes that an input passes, with the outputs by which it leaves them.
std::map<int, std::set<int>> ways_of(const GraphDraft& graph, const PlanInput& in) {
  std::map<int, std::set<int>> out{{in.node, {in.output}}};
  for (const int before : nodes_before(graph, in.node))
    for (const int reader : graph.readers_of(before))
      for (const PlanInput& by : graph.node(reader).inputs)
        if (by.node == before && out.contains(reader)) out[before].insert(by.output);
  for (const int source : graph.sources)
    if (out.contains(source)) out[kAllSources].insert(source);
  return out;
}

// Whether the inputs come from different outputs of one node, so an item takes only one of them. By
// the outputs of a stage that splits it takes all of them.
bool are_apart(const GraphDraft& graph, const PlanInput& a, const PlanInput& b) {
  const std::map<int, std::set<int>> way_a = ways_of(graph, a), way_b = ways_of(graph, b);
  return std::any_of(way_a.begin(), way_a.end(), [&](const auto& at) {
    const auto other = way_b.find(at.first);
    if (other == way_b.end() || at.second.contains(-1) || other->second.contains(-1)) return false;
    if (const StageInfo* info = at.first < 0 ? nullptr : graph.node(at.first).info;
        info != nullptr && info->traits.splits)
      return false;
    return std::none_of(at.second.begin(), at.second.end(),
                        [&](int o) { return other->second.contains(o); });
  });
}

}  // namespace

void check_join(GraphDraft& graph, const PlanNode& d) {
  for (std::size_t a = 0; a < d.inputs.size(); ++a)
    for (std::size_t b = a + 1; b < d.inputs.size(); ++b)
      if (!are_apart(graph, d.inputs[a], d.inputs[b]))
        return graph.error(
            mark_of(d, "from"),
            fmt::format(
                "{}.from: {} joins the outputs of a route or several sources, but every file "
                "comes by both {} and {}; take one of them, or put a route before them",
                d.name, d.info->name, d.common.from[a], d.common.from[b]));
}

std::optional<std::pair<std::string, std::string>> never_together(const GraphDraft& graph,
                                                                  const PlanNode& d) {
  if (d.info == nullptr || !d.info->traits.pairs || d.inputs.size() != d.common.from.size())
    return {};
  for (std::size_t a = 0; a < d.inputs.size(); ++a)
    for (std::size_t b = a + 1; b < d.inputs.size(); ++b)
      if (are_apart(graph, d.inputs[a], d.inputs[b])) return {{d.common.from[a], d.common.from[b]}};
  return {};
}

void check_pairs(GraphDraft& graph, const PlanNode& d) {
  const auto error = [&](const std::string& text) {
    graph.error(mark_of(d, "from"), fmt::format("{}.from: {} {}", d.name, d.info->name, text));
  };
  if (d.inputs.size() < 2 && d.info->traits.kind == StageKind::sink) return;
  if (d.inputs.size() < 2)
    return error(
        fmt::format("takes the outputs of several nodes, but {} is one node; name all of them: "
                    "from: [{}, ...]",
                    d.common.from.front(), d.common.from.front()));
  if (const auto apart = never_together(graph, d))
    return error(
        fmt::format("needs every file from each of its inputs, but a file comes by {} or by {}, "
                    "never by both; merge joins the outputs of a route or several sources",
                    apart->first, apart->second));
  std::map<int, std::size_t> common;  // nodes before it, and how many inputs pass each
  for (std::size_t a = 0; a < d.inputs.size(); ++a) {
    for (std::size_t b = a + 1; b < d.inputs.size(); ++b) {
      if (d.inputs[a].node == d.inputs[b].node && d.inputs[a].output == d.inputs[b].output)
        return error(fmt::format("names {} twice; name two different nodes", d.common.from[a]));
    }
    for (const auto& [node, outputs] : ways_of(graph, d.inputs[a])) ++common[node];
  }
  common.erase(kAllSources);
  for (const auto& [node, inputs] : common) {
    const PlanNode& up = graph.node(node);
    if (inputs < d.inputs.size() && up.info != nullptr &&
        (up.info->traits.expands || up.info->traits.cuts))
      return error(
          fmt::format("takes the same blocks by all of its inputs, but only some of its inputs "
                      "come by {} ({}), "
                      "which cuts files into blocks; let all of them come by the same {}",
                      up.name, up.info->name, up.info->name));
  }
}

}  // namespace melflow
