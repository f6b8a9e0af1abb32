#include "pipeline/plan/written_out.h"

#include <algorithm>
#include <set>
#include <utility>

namespace melflow {
namespace {

const StageInfo* stage_of(const NodeSpec& node, const Registry& registry) {
  const Value* stage = node.options.find("stage");
  return stage != nullptr && stage->is_scalar() ? registry.find(stage->text()) : nullptr;
}

// Calls `visit` with every name that the node takes from.
template <class F>
void for_inputs(Value* from, F visit) {
  if (from == nullptr) return;
  if (from->is_scalar()) return visit(*from);
  for (Value& item : from->items())
    if (item.is_scalar()) visit(item);
}

std::vector<const NodeSpec*> nodes_before(const GraphSpec& graph, const NodeSpec& node) {
  std::vector<const NodeSpec*> out;
  std::set<const NodeSpec*> seen{&node};
  for (std::size_t next = 0; next <= out.size(); ++next) {
    Value from;
    if (const Value* of = (next == 0 ? &node : out[next - 1])->options.find("from")) from = *of;
    for_inputs(&from, [&](const Value& name) {
      const auto at = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const NodeSpec& n) {
        return name.text() == n.name || name.text().starts_with(n.name + ".");
      });
      if (at != graph.nodes.end() && seen.insert(&*at).second) out.push_back(&*at);
    });
  }
  return out;
}

// The name of a node that is added; "mel_2" where there is a node mel.
std::string free_name(const GraphSpec& graph, const std::string& name) {
  const auto is_taken = [&graph](const std::string& other) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [&other](const NodeSpec& n) { return n.name == other; });
  };
  std::string out = name;
  for (int i = 2; is_taken(out); ++i) out = name + "_" + std::to_string(i);
  return out;
}

}  // namespace

GraphSpec written_out(const GraphSpec& graph, const Registry& registry, Problems& problems,
                      std::vector<Problem>& notes) {
  GraphSpec out = graph;
  for (std::size_t i = 0; i < out.nodes.size(); ++i) {
    const NodeSpec node = out.nodes[i];
    const StageInfo* info = stage_of(node, registry);
    if (info == nullptr || !info->write_out) continue;
    WritingOut writing{nodes_before(out, out.nodes[i]), problems, notes};
    std::vector<NodeSpec> chain = info->write_out(node, writing);
    if (chain.empty()) continue;
    const auto from = node.options.find("from");
    std::string last;
    for (NodeSpec& n : chain) {
      if (n.name != node.name) n.name = free_name(out, n.name);
      if (!last.empty())
        n.options.set("from", Value::scalar(last, node.mark));
      else if (from != nullptr)
        n.options.set("from", *from);
      last = n.name;
    }
    for (NodeSpec& n : out.nodes)
      for_inputs(n.options.find("from"), [&](Value& name) {
        if (name.text() == node.name) name = Value::scalar(last, name.mark());
      });
    out.nodes.erase(out.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t count = chain.size();
    out.nodes.insert(out.nodes.begin() + static_cast<std::ptrdiff_t>(i),
                     std::make_move_iterator(chain.begin()), std::make_move_iterator(chain.end()));
    i += count - 1;
  }
  return out;
}

}  // namespace melflow
