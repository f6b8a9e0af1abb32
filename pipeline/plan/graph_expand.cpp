#include "pipeline/plan/graph_expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "pipeline/plan/several_sources.h"

namespace melflow {
namespace {

// Returns the option of a source without which the node would not be inserted.
std::string asking_option(const StageInfo& info, const NodeSpec& spec, const std::string& node) {
  for (const Value::Entry& e : spec.options.entries()) {
    NodeSpec without = spec;
    std::erase_if(without.options.entries(), [&](const auto& other) { return other.key == e.key; });
    const std::vector<Insertion> others = info.insert(without);
    if (std::none_of(others.begin(), others.end(),
                     [&](const Insertion& i) { return i.node.name == node; }))
      return e.key;
  }
  return {};
}

// Returns the option that causes the insertion, "files.feed: preload", or the node's name.
std::string asking(const NodeSpec& source, const PlanNode& inserted) {
  if (inserted.asked_by.empty()) return inserted.name + ":";
  const Value* value = source.options.find(inserted.asked_by);
  return fmt::format(
      "{}.{}:{}", source.name, inserted.asked_by,
      value != nullptr && value->is_scalar() ? fmt::format(" {}", excerpt(value->text())) : "");
}

// Reports branches and missing sources before an inserted node: all of the graph's data must pass
// it.
void check_no_branch(GraphDraft& graph, const PlanNode& inserted, int last) {
  const NodeSpec& source = graph.written(inserted);
  std::set<int> before{last};
  for (std::vector<int> left{last}; !left.empty();) {
    const PlanNode& up = graph.node(left.back());
    if (graph.readers_of(left.back()).size() > 1)
      graph.error(mark_of(source, inserted.asked_by),
                  fmt::format("{} needs one way for all that comes to {}, but several nodes take "
                              "from {}; let them take from {}",
                              asking(source, inserted), graph.node(last).name, up.name,
                              graph.node(last).name));
    left.pop_back();
    for (const PlanInput& in : up.inputs)
      if (before.insert(in.node).second) left.push_back(in.node);
  }
  for (const int other : graph.sources)
    if (!before.contains(other))
      graph.error(mark_of(source, inserted.asked_by),
                  fmt::format("{} is for what all sources give, but what {} gives does not come to "
                              "{}; let one node take all of them: from: {}",
                              asking(source, inserted), graph.node(other).name,
                              graph.node(last).name, all_sources(graph)));
}

}  // namespace

void expand_node(GraphDraft& graph, const NodeSpec& spec) {
  const Value* stage = spec.options.find("stage");
  const StageInfo* info =
      stage != nullptr && stage->is_scalar() ? graph.registry.find(stage->text()) : nullptr;
  std::vector<NodeSpec> chain{spec};
  if (info != nullptr && info->expand) chain = info->expand(spec);
  graph.outlets.emplace(spec.name, chain.back().name);
  const bool is_first = std::none_of(
      graph.nodes.begin(), graph.nodes.end(),
      [info](const PlanNode& n) { return info != nullptr && n.stage_name == info->name; });
  const auto add = [&](NodeSpec&& node) -> PlanNode& {
    PlanNode& n = graph.nodes.emplace_back();
    static_cast<NodeSpec&>(n) = std::move(node);
    n.written = spec.name;
    if (n.name == spec.name && stage != nullptr && stage->is_scalar()) n.stage_name = stage->text();
    return n;
  };
  for (NodeSpec& n : chain) add(std::move(n));
  // Inserted once for all sources: the options that cause the insertion are equal in them.
  if (info == nullptr || !info->insert || !is_first) return;
  for (Insertion& inserted : info->insert(spec)) {
    PlanNode& n = add(std::move(inserted.node));
    n.behind = inserted.port;
    n.asked_by = asking_option(*info, spec, n.name);
  }
}

// Inserts it after the only node that yields its port to nodes of other ports. Those that pass on
// several (PassesAny) have a port of their own, so they come after what is inserted.
void insert_node(GraphDraft& graph, int index) {
  PlanNode& d = graph.nodes[static_cast<std::size_t>(index)];
  const NodeSpec& source = graph.written(d);
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
    names.push_back(graph.node(i).name);
  }
  if (ends.empty())
    return graph.error(
        mark_of(source, d.asked_by),
        fmt::format("{} needs a node that gives {}, and the graph has none; add one, "
                    "or remove that option",
                    asking(source, d), d.behind->name));
  if (ends.size() > 1)
    return graph.error(
        mark_of(source, d.asked_by),
        fmt::format("{} needs a single node that all files go through as {}, but some go through "
                    "{}; {}",
                    asking(source, d), d.behind->name, fmt::join(names, ", some through "),
                    graph.sources.size() > 1
                        ? fmt::format("take all sources by one node: from: {}", all_sources(graph))
                        : std::string("let one of them take from the other, or remove one")));
  const std::vector<int> readers = graph.readers_of(ends.front());
  d.inputs = {{ends.front()}};
  for (const int reader : readers)
    for (PlanInput& in : graph.nodes[static_cast<std::size_t>(reader)].inputs)
      if (in.node == ends.front()) in.node = index;
  check_no_branch(graph, d, ends.front());
}

}  // namespace melflow
