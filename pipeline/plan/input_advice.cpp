#include "pipeline/plan/input_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "pipeline/base/sentences.h"
#include "pipeline/plan/missing_nodes.h"

namespace melflow {
namespace {

using Stages = std::vector<const StageInfo*>;

// "a batch" or "disk_read and decode", without the stages that are inserted automatically.
std::string list_text(const Stages& stages) {
  const bool is_any_written =
      std::any_of(stages.begin(), stages.end(), [](const auto* s) { return !s->is_put_in; });
  std::vector<std::string> names;
  for (const StageInfo* s : stages)
    if (!is_any_written || !s->is_put_in) names.push_back(s->name);
  if (names.size() == 1) return "a " + names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// How to supply the input of a node: from another node, through stages that are still missing.
struct Fix {
  int node = -1;  // -1: there is none
  Stages stages;
};

// Looks at the node that `d` names, and at nearer ones whose output nobody takes, which `d` may
// have skipped.
Fix fix_of(const GraphDraft& graph, const PlanNode& d, int named) {
  Fix out;
  const auto look = [&](int i) {
    const PortType given = graph.port_of(i);
    Stages stages;
    if (!fits(*d.info, given)) {
      if (!d.info->ports.empty()) return;
      stages = stages_between(graph.registry, given, d.info->traits.in, false);
      if (stages.empty()) return;
    }
    if (out.node < 0 || stages.size() < out.stages.size()) out = {i, std::move(stages)};
  };
  look(named);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const PlanNode& other = graph.node(i);
    if (&other == &d || other.info == nullptr || !other.outputs.empty() || other.behind ||
        other.info->traits.kind == StageKind::sink || !graph.readers_of(i).empty())
      continue;
    const std::vector<int> before = nodes_before(graph, i);
    if (std::none_of(before.begin(), before.end(), [&](int n) { return &graph.node(n) == &d; }))
      look(i);
  }
  return out;
}

// Returns a node that `d` can take from instead of `named`, for a stage that takes several types:
// one before `named`, the nearest first, else any; -1 for none. A sink gets the type that its stage
// lists first.
int other_giver(const GraphDraft& graph, const PlanNode& d, int named) {
  std::vector<int> candidates = nodes_before(graph, named);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const std::vector<int> before = nodes_before(graph, i);
    const bool is_behind =
        std::any_of(before.begin(), before.end(), [&](int n) { return &graph.node(n) == &d; });
    if (!is_behind && &graph.node(i) != &d) candidates.push_back(i);
  }
  int best = -1;
  std::size_t least = d.info->ports.size();
  for (const int i : candidates) {
    const PlanNode& other = graph.node(i);
    if (other.info == nullptr || !other.outputs.empty() || other.behind ||
        other.info->traits.kind == StageKind::sink)
      continue;
    const auto at = std::find(d.info->ports.begin(), d.info->ports.end(), graph.port_of(i));
    const auto place = static_cast<std::size_t>(at - d.info->ports.begin());
    if (place >= least) continue;
    best = i;
    least = place;
    if (d.info->traits.kind != StageKind::sink) return best;
  }
  return best;
}

// "; write from: resample, since resample (resample) gives waveforms, and from: way in segment".
std::string other_place(const GraphDraft& graph, const PlanNode& d, int named) {
  const int giver = other_giver(graph, d, named);
  if (giver < 0) return {};
  std::string out = fmt::format("; write from: {}, since {} gives {}", written_name(graph, giver),
                                written_text(graph, giver), plural(graph.port_of(giver).name));
  if (d.info->traits.kind == StageKind::sink) return out;
  const std::vector<int> before = nodes_before(graph, named);
  for (const int reader : graph.readers_of(giver))
    if (reader == named || std::find(before.begin(), before.end(), reader) != before.end())
      return out + fmt::format(", and from: {} in {}", d.name, written_name(graph, reader));
  return out;
}

// "; write takes: rows", where an option of the stage has the type as a choice.
std::string other_input(const GraphDraft& graph, const PlanNode& d, const PortType& given) {
  const StageInfo* stage = graph.registry.find(d.stage_name);
  if (stage == nullptr) return {};
  const auto config = stage->configure();
  for (const Field& f : config->schema().fields())
    if (std::find(f.choices.begin(), f.choices.end(), given.name) != f.choices.end())
      return fmt::format("; write {}: {}", f.name, given.name);
  return {};
}

// Advises to remove a node that makes what `named` yields already: "; remove decode, since files
// (synthetic) gives waveforms already, and write from: files in resample".
std::string needlessness(const GraphDraft& graph, const PlanNode& d, int named) {
  const PortType given = graph.port_of(named);
  if (d.info->runs_code) return other_input(graph, d, given);
  if (!d.info->ports.empty() || !(d.info->traits.out == given)) return {};
  std::string out = fmt::format("; remove {}, since {} gives {} already", d.name,
                                written_text(graph, named), plural(given.name));
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    if (&graph.node(i) == &d)
      for (const int reader : graph.readers_of(i))
        out += fmt::format(", and write from: {} in {}", written_name(graph, named),
                           graph.node(reader).name);
  return out;
}

}  // namespace

bool is_misled(const GraphDraft& graph, const PlanNode& d) {
  if (d.info == nullptr || d.inputs.size() != 1) return false;
  const PlanNode& up = graph.node(d.inputs.front().node);
  return up.info != nullptr && up.info->traits.kind != StageKind::sink &&
         !fits(*d.info, graph.port_of(d.inputs.front()));
}

std::string written_name(const GraphDraft& graph, int node) {
  const PlanNode& d = graph.node(node);
  return d.name == graph.outlets.at(d.written) ? d.written : d.name;
}

std::string written_text(const GraphDraft& graph, int node) {
  const PlanNode& d = graph.node(node);
  const std::string name = written_name(graph, node);
  const Value* stage = name == d.name ? nullptr : graph.written(d).options.find("stage");
  return fmt::format("'{}' ({})", name, stage != nullptr ? stage->text() : d.stage_name);
}

std::vector<int> nodes_before(const GraphDraft& graph, int node) {
  std::vector<int> out;
  for (std::size_t done = 0; true; ++done) {
    for (const PlanInput& in : graph.node(node).inputs)
      if (std::find(out.begin(), out.end(), in.node) == out.end()) out.push_back(in.node);
    if (done == out.size()) return out;
    node = out[done];
  }
}

bool fits(const StageInfo& stage, const PortType& port, std::size_t input) {
  const std::vector<PortType>& known = stage.ports;
  return known.empty() ? port == input_port(stage.traits, input)
                       : std::find(known.begin(), known.end(), port) != known.end();
}

std::string input_advice(const GraphDraft& graph, const PlanNode& d, int named) {
  const Fix by = fix_of(graph, d, named);
  if (by.node < 0)
    return d.info->ports.empty() ? needlessness(graph, d, named) : other_place(graph, d, named);
  if (by.node == named) return fmt::format("; put {} between them", list_text(by.stages));
  const PlanNode& left = graph.node(by.node);
  const bool are_put_in = std::all_of(by.stages.begin(), by.stages.end(),
                                      [](const auto* stage) { return stage->is_put_in; });
  if (by.stages.empty())
    return fmt::format(
        "; write from: {0}, since '{0}' ({1}) gives them and no node takes those yet", left.name,
        left.info->name);
  if (are_put_in)
    return fmt::format("; write from: {0}, since no node takes what '{0}' ({1}) gives", left.name,
                       left.info->name);
  return fmt::format("; no node takes what '{}' ({}) gives: put {} between it and {}", left.name,
                     left.info->name, list_text(by.stages), d.name);
}

std::set<int> left_by_mistake(const GraphDraft& graph) {
  std::set<int> out;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const PlanNode& d = graph.node(i);
    if (!is_misled(graph, d)) continue;
    out.insert(fix_of(graph, d, d.inputs.front().node).node);
    if (!d.info->ports.empty()) out.insert(i);  // its output type is as wrong as its input type
  }
  return out;
}

}  // namespace melflow
