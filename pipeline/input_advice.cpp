#include "pipeline/input_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

// The fewest stages that lead from one port to another, in the order of the data; none where there
// is no way.
std::vector<std::string> stages_between(const Registry& registry, const PortType& from,
                                        const PortType& to) {
  struct Way {
    PortType port;
    std::vector<std::string> stages;
  };
  std::vector<Way> ways{{from, {}}};
  for (std::size_t at = 0; at < ways.size(); ++at) {
    if (ways[at].port == to) return ways[at].stages;
    for (const StageInfo* s : registry.all()) {
      const auto is_known = [&](const Way& w) { return w.port == s->traits.out; };
      const bool is_between =
          s->traits.kind == StageKind::transform || s->traits.kind == StageKind::combine;
      if (!is_between || s->traits.pairs || !s->ports.empty() || !(s->traits.in == ways[at].port) ||
          std::any_of(ways.begin(), ways.end(), is_known))
        continue;
      Way longer{s->traits.out, ways[at].stages};
      longer.stages.push_back(s->name);
      ways.push_back(std::move(longer));
    }
  }
  return {};
}

// "a batch"; "decode, segment and batch".
std::string list_text(std::vector<std::string> stages) {
  if (stages.size() == 1) return "a " + stages.front();
  const std::string last = stages.back();
  stages.pop_back();
  return fmt::format("{} and {}", fmt::join(stages, ", "), last);
}

// How a node gets what it takes: from another one, through stages that there are not yet.
struct Mending {
  int node = -1;  // -1: there is no way
  std::vector<std::string> stages;
};

// From the node that `d` names, or one nearer to it whose output nobody takes: `d` has then passed it
// over.
Mending mending(const GraphDraft& graph, const NodeDraft& d, int named) {
  Mending out;
  const auto look = [&](int i) {
    const PortType given = graph.port_of(i);
    std::vector<std::string> stages;
    if (!fits(*d.info, given)) {
      if (!d.info->ports.empty()) return;
      stages = stages_between(graph.registry, given, d.info->traits.in);
      if (stages.empty()) return;
    }
    if (out.node < 0 || stages.size() < out.stages.size()) out = {i, std::move(stages)};
  };
  look(named);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const NodeDraft& other = graph.node(i);
    if (&other == &d || other.info == nullptr || !other.outputs.empty() || other.behind ||
        other.info->traits.kind == StageKind::sink || !graph.readers_of(i).empty())
      continue;
    const std::vector<int> before = nodes_before(graph, i);
    if (std::none_of(before.begin(), before.end(), [&](int n) { return &graph.node(n) == &d; }))
      look(i);
  }
  return out;
}

// Whether `d` takes one input, which does not fit.
bool is_misled(const GraphDraft& graph, const NodeDraft& d) {
  if (d.info == nullptr || d.from.size() != 1) return false;
  const NodeDraft& up = graph.node(d.from.front().node);
  return up.info != nullptr && up.info->traits.kind != StageKind::sink &&
         !fits(*d.info, graph.port_of(d.from.front().node));
}

}  // namespace

std::vector<int> nodes_before(const GraphDraft& graph, int node) {
  std::vector<int> out;
  for (std::size_t done = 0; true; ++done) {
    for (const PlanInput& in : graph.node(node).from)
      if (std::find(out.begin(), out.end(), in.node) == out.end()) out.push_back(in.node);
    if (done == out.size()) return out;
    node = out[done];
  }
}

bool fits(const StageInfo& stage, const PortType& port) {
  const std::vector<PortType>& known = stage.ports;
  return known.empty() ? port == stage.traits.in
                       : std::find(known.begin(), known.end(), port) != known.end();
}

std::string input_advice(const GraphDraft& graph, const NodeDraft& d, int named) {
  const Mending by = mending(graph, d, named);
  if (by.node < 0) return {};
  if (by.node == named) return fmt::format("; put {} between them", list_text(by.stages));
  const NodeDraft& left = graph.node(by.node);
  if (by.stages.empty())
    return fmt::format("; write from: {0}, since {0} ({1}) gives it and no node takes that yet",
                       left.spec->name, left.info->name);
  return fmt::format("; nothing takes what {} ({}) gives: put {} between it and {}",
                     left.spec->name, left.info->name, list_text(by.stages), d.spec->name);
}

std::set<int> left_by_mistake(const GraphDraft& graph) {
  std::set<int> out;
  for (const NodeDraft& d : graph.nodes)
    if (is_misled(graph, d)) out.insert(mending(graph, d, d.from.front().node).node);
  return out;
}

}  // namespace melflow
