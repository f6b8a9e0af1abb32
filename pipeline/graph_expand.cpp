#include "pipeline/graph_expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "pipeline/several_sources.h"

namespace melflow {
namespace {

// What is before an inserted node has no branch and is of all sources, so that all of the graph's data
// goes through it.
void check_no_branch(GraphDraft& graph, const NodeDraft& inserted, int last) {
  const NodeSpec& source = graph.spec.nodes[inserted.written];
  std::set<int> before{last};
  for (std::vector<int> left{last}; !left.empty();) {
    const NodeDraft& up = graph.node(left.back());
    if (graph.readers_of(left.back()).size() > 1)
      graph.error(source.mark, fmt::format("{}: {} takes a graph without a branch before it, but "
                                           "{} has several readers",
                                           source.name, inserted.spec->name, up.spec->name));
    left.pop_back();
    for (const PlanInput& in : up.from)
      if (before.insert(in.node).second) left.push_back(in.node);
  }
  for (const int other : sources_of(graph))
    if (!before.contains(other))
      graph.error(source.mark,
                  fmt::format("{}: {} takes what all sources give, but what {} gives "
                              "does not come to {}",
                              source.name, inserted.spec->name, graph.node(other).spec->name,
                              graph.node(last).spec->name));
}

}  // namespace

void expand_node(GraphDraft& graph, const NodeSpec& spec) {
  const Value* stage = spec.options.find("stage");
  const StageInfo* info =
      stage != nullptr && stage->is_scalar() ? graph.registry.find(stage->text()) : nullptr;
  std::vector<NodeSpec> chain{spec};
  if (info != nullptr && info->expand) chain = info->expand(spec);
  graph.outlets.push_back(chain.back().name);
  const std::size_t written = graph.outlets.size() - 1;
  for (NodeSpec& n : chain) graph.expanded.push_back({std::move(n), written});
  if (info == nullptr || !info->insert) return;
  // For all sources: the options that ask for these nodes are equal in them.
  for (std::size_t i = 0; i < written; ++i)
    if (const Value* other = graph.spec.nodes[i].options.find("stage");
        other != nullptr && other->is_scalar() && other->text() == info->name)
      return;
  for (Insertion& inserted : info->insert(spec))
    graph.expanded.push_back({std::move(inserted.node), written, inserted.port});
}

// Behind the one node that gives its port to others than nodes of the same port.
void insert_node(GraphDraft& graph, int index) {
  NodeDraft& d = graph.nodes[static_cast<std::size_t>(index)];
  const NodeSpec& source = graph.spec.nodes[d.written];
  const auto gives = [&](int i) {
    const StageInfo* info = graph.node(i).info;
    return info != nullptr && info->traits.out == *d.behind;
  };
  std::vector<int> ends;
  std::vector<std::string> names;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const std::vector<int> readers = graph.readers_of(i);
    if (!gives(i) || std::all_of(readers.begin(), readers.end(), gives)) continue;
    ends.push_back(i);
    names.push_back(graph.node(i).spec->name);
  }
  if (ends.empty())
    return graph.error(
        source.mark, fmt::format("{}: {} has no place in the graph: no node gives {}", source.name,
                                 d.spec->name, d.behind->name));
  if (ends.size() > 1)
    return graph.error(
        source.mark,
        fmt::format(
            "{}: {} has several places in the graph: {} leaves the chain at {}; {}", source.name,
            d.spec->name, d.behind->name, fmt::join(names, " and "),
            sources_of(graph).size() > 1
                ? fmt::format("let the sources meet before them: from: {}", all_sources(graph))
                : std::string("let one of these nodes give it to all others")));
  const std::vector<int> readers = graph.readers_of(ends.front());
  d.from = {{ends.front()}};
  for (const int reader : readers)
    for (PlanInput& in : graph.nodes[static_cast<std::size_t>(reader)].from)
      if (in.node == ends.front()) in.node = index;
  check_no_branch(graph, d, ends.front());
}

}  // namespace melflow
