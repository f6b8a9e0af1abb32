#include "pipeline/plan/graph_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/base/sentences.h"
#include "pipeline/plan/input_advice.h"
#include "pipeline/plan/meeting_inputs.h"
#include "pipeline/plan/several_sources.h"
#include "pipeline/stage/reach.h"

namespace melflow {
namespace {

// Lists the types that a stage takes by that input: "files, bytes or waveforms".
std::string taken_by(const StageInfo& stage, std::size_t input = 0) {
  if (stage.ports.empty()) return plural(input_port(stage.traits, input).name);
  std::string out = plural(stage.ports.front().name);
  for (std::size_t i = 1; i < stage.ports.size(); ++i)
    out += (i + 1 == stage.ports.size() ? " or " : ", ") + plural(stage.ports[i].name);
  return out;
}

void check_pair(GraphDraft& graph, std::size_t number, const PlanNode& d) {
  const PlanInput& input = d.inputs[number];
  const PlanNode& up = graph.node(input.node);
  const NodeSpec& spec = d;
  if (d.common.start_at > 0 && up.info->traits.lends)
    graph.error(mark_of(spec, "start_at"),
                fmt::format("{}.start_at: what {} ({}) gives holds a place on a device, and those "
                            "that come after wait for one; set it where batches come in, before "
                            "the device",
                            spec.name, up.name, up.stage_name));
  const PortType given = graph.port_of(input);
  const bool has_types = !d.info->traits.ins.empty() || !up.info->traits.outs.empty();
  if (up.info->traits.kind == StageKind::sink) {
    graph.error(mark_of(spec, "from"), fmt::format("{}.from: {} ({}) is a sink and gives nothing",
                                                   spec.name, up.name, up.stage_name));
  } else if (!fits(*d.info, given, number)) {
    graph.error(
        mark_of(spec, "from"),
        fmt::format("{}.from: {} takes {}, but {} gives {}{}", spec.name, d.stage_name,
                    taken_by(*d.info, number), written_text(graph, input.node), plural(given.name),
                    has_types ? "" : input_advice(graph, d, input.node)));
  }
}

// Returns the most stages in a row, up to this node, that yield several blocks for one. `known`
// caches the results per node; -1: none yet.
int expanding_in_a_row(const GraphDraft& graph, int node, std::vector<int>& known) {
  int& most = known[static_cast<std::size_t>(node)];
  if (most >= 0) return most;
  most = 0;
  for (const PlanInput& in : graph.node(node).inputs)
    most = std::max(most, expanding_in_a_row(graph, in.node, known));
  const StageInfo* info = graph.node(node).info;
  return most += info != nullptr && info->traits.expands ? 1 : 0;
}

// Reports a stage that yields several blocks for one where that is not allowed: after a batch,
// whose blocks would belong to all of its items; after too many others; or before or after one that
// cuts items into parts, since the memory kept for parts does not cover it.
void check_expansion(GraphDraft& graph) {
  std::vector<int> in_a_row(graph.nodes.size(), -1);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const PlanNode& d = graph.node(i);
    if (d.info == nullptr || is_misled(graph, d)) continue;
    const StageTraits& own = d.info->traits;
    if (!own.expands && !own.cuts) continue;
    const PlanNode *combine = nullptr, *cutter = nullptr, *divider = nullptr, *expander = nullptr;
    for (const int at : nodes_before(graph, i)) {
      const PlanNode& up = graph.node(at);
      if (up.info == nullptr) continue;
      const StageTraits& t = up.info->traits;
      const auto note = [&up](bool is_such, const PlanNode*& nearest) {
        if (is_such && nearest == nullptr) nearest = &up;
      };
      note(t.kind == StageKind::combine, combine);
      note(t.cuts, cutter);
      note(t.divides, divider);
      note(t.expands, expander);
    }
    const char* does = own.divides ? "makes several items of one"
                       : own.cuts  ? "cuts recordings into records of their own"
                                   : "cuts its input into blocks";
    const auto refuse = [&](const PlanNode& up, const std::string& why) {
      graph.error(d.mark, fmt::format("{}: {} {}, but it comes after {} ({}), {}", d.name,
                                      d.info->name, does, up.name, up.info->name, why));
    };
    if (own.expands && combine != nullptr)
      refuse(*combine, "which puts several items into one; put it before");
    if (own.cuts && divider != nullptr)
      refuse(*divider, "which makes several items of one; use one of the two");
    if (own.expands && cutter != nullptr && (own.divides || expander != nullptr))
      refuse(*cutter, "which cuts recordings into records of their own; use one of the two");
    if (own.expands && expanding_in_a_row(graph, i, in_a_row) == kMostExpanding + 1)
      refuse(*expander, fmt::format("and is number {} in a row that gives several blocks or items "
                                    "for one; at most {} can",
                                    kMostExpanding + 1, kMostExpanding));
  }
}

// Reports named outputs that no node takes, unless no output is taken at all, or items leave by all
// of them.
void check_outputs(GraphDraft& graph, int index) {
  const PlanNode& d = graph.node(index);
  if (d.info->traits.splits) return;
  const std::vector<int> readers = graph.readers_of(index);
  for (std::size_t o = 0; o < d.outputs.size() && !readers.empty(); ++o) {
    const auto takes = [&](int reader) {
      const std::vector<PlanInput>& from = graph.node(reader).inputs;
      return std::any_of(from.begin(), from.end(), [&](const PlanInput& in) {
        return in.node == index && in.output == static_cast<int>(o);
      });
    };
    if (std::none_of(readers.begin(), readers.end(), takes))
      graph.error(d.mark,
                  fmt::format("{0}: no node takes its output {1}; take it with from: {0}.{1}",
                              d.name, d.outputs[o]));
  }
}

// Returns the name of a source stage.
std::string some_source(const Registry& registry) {
  for (const StageInfo* s : registry.all())
    if (s->traits.kind == StageKind::source) return s->name;
  return "a source, of which this program has none";
}

// Lists the sinks that can take a node's output, " (discard, npy_write)"; "" if there are none.
std::string sinks_of(const GraphDraft& graph, int node) {
  std::vector<std::string> names;
  for (const StageInfo* s : graph.registry.all())
    if (s->traits.kind == StageKind::sink && fits(*s, graph.port_of(node)))
      names.push_back(s->name);
  return names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", "));
}

// Names the only suitable input of a node that takes one but has several.
std::string which_to_keep(const GraphDraft& graph, const PlanNode& node) {
  std::vector<std::string> fitting;
  for (std::size_t i = 0; i < node.inputs.size() && node.inputs.size() == node.common.from.size();
       ++i)
    if (fits(*node.info, graph.port_of(node.inputs[i]))) fitting.push_back(node.common.from[i]);
  const bool are_known =
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](const PlanInput& in) { return graph.node(in.node).info != nullptr; });
  if (fitting.size() == 1 && are_known)
    return fmt::format("; write from: {0}, since only '{0}' gives what it takes ({1})",
                       fitting.front(), taken_by(*node.info));
  if (node.info->traits.kind == StageKind::sink)
    return fmt::format("; write a node with {} for each", node.info->name);
  return "; keep one of them, or join them first: merge joins the outputs of a route or several "
         "sources, concat puts rows side by side, batches takes several";
}

// Names the type that a node takes, and a node that yields it, preferably one that is unused.
std::string where_from(const GraphDraft& graph, const PlanNode& node) {
  std::string out = fmt::format("{} takes {}", node.stage_name, taken_by(*node.info));
  int giver = -1;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const PlanNode& other = graph.node(i);
    if (&other == &node || other.info == nullptr || !other.outputs.empty() || other.behind ||
        other.info->traits.kind == StageKind::sink || !fits(*node.info, graph.port_of(i)))
      continue;
    if (giver < 0 || (!graph.readers_of(giver).empty() && graph.readers_of(i).empty())) giver = i;
  }
  if (giver < 0) return out;
  const std::string& name = graph.node(giver).name;
  return out + fmt::format(", and '{}' ({}) gives them: write from: {}", name,
                           graph.node(giver).stage_name, name);
}

// Whether a node's inputs are several sources, which it may take together; reports repetitions.
bool check_from_sources(GraphDraft& graph, const PlanNode& node) {
  const std::vector<PlanInput>& from = node.inputs;
  const bool are_known = from.size() == node.common.from.size();
  if (node.common.from.size() < 2 || from.empty() || node.info->traits.pairs ||
      node.info->traits.kind == StageKind::source)
    return false;
  std::set<int> seen;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const StageInfo* info = graph.node(from[i].node).info;
    if (info == nullptr || info->traits.kind != StageKind::source) return false;
    if (are_known && !seen.insert(from[i].node).second && !node.info->traits.joins)
      graph.error(mark_of(node, "from"), fmt::format("{}.from: names {} twice; once is enough",
                                                     node.name, node.common.from[i]));
  }
  return true;
}

// Whether one of the options common to all nodes is written by another program's name or with a
// typing error, both of which are reported elsewhere.
bool has_other_name(const PlanNode& node, std::string_view option) {
  NodeOptions common;
  Schema schema;
  common.describe(schema);
  const auto others = schema.other_names();
  const std::string meant = did_you_mean(option);
  const std::vector<Value::Entry>& written = node.options.entries();
  return std::any_of(others.begin(), others.end(),
                     [&](const OtherName& other) {
                       return other.here == option && node.options.find(other.name) != nullptr;
                     }) ||
         std::any_of(written.begin(), written.end(), [&](const Value::Entry& e) {
           return advice_on(e.key, {&node.config->schema(), &schema}, e.value) == meant;
         });
}

// Reports a missing `outputs` of a stage with named outputs. A wrong `outputs` was reported before.
void check_named_outputs(GraphDraft& graph, const PlanNode& node) {
  const NodeSpec& spec = node;
  if (!node.info->outputs || !node.outputs.empty()) return;
  if (const Value* written = spec.options.find("outputs");
      written != nullptr && !written->is_null())
    return;
  std::string wanted = "long";  // or the output that a node takes
  for (const PlanNode& other : graph.nodes)
    for (const std::string& from : other.common.from)
      if (from.starts_with(spec.name + ".") && wanted == "long")
        wanted = from.substr(spec.name.size() + 1);
  graph.error(spec.mark,
              fmt::format("{}: 'outputs' is missing; write the outputs with their conditions, such "
                          "as outputs: {{{}: {{duration: \"> 15s\"}}}}",
                          spec.name, excerpt(wanted)));
}

}  // namespace

void check_input(GraphDraft& graph, const PlanNode& node) {
  if (node.info == nullptr || node.behind) return;
  check_named_outputs(graph, node);
  const NodeSpec& spec = node;
  const bool is_source = node.info->traits.kind == StageKind::source;
  if (is_source && !node.common.from.empty())
    graph.error(mark_of(spec, "from"), fmt::format("{}.from: {} is a source and takes no input",
                                                   spec.name, node.info->name));
  if (is_source && node.common.start_at > 0)
    graph.error(
        mark_of(spec, "start_at"),
        fmt::format("{}.start_at: {} is a source and has no queue", spec.name, node.info->name));
  if (!is_source && node.common.files_per_task)
    graph.error(
        mark_of(spec, "files_per_task"),
        fmt::format("{}.files_per_task: {} is not a source; the source says how many files go "
                    "together",
                    spec.name, node.info->name));
  const Value* from = spec.options.find("from");
  const bool is_refused = from != nullptr && (from->is_map() || from->is_missing());
  if (!is_source && node.common.from.empty() && !is_refused && !has_other_name(node, "from"))
    graph.error(spec.mark,
                fmt::format("{}: 'from' is missing; {}", spec.name, where_from(graph, node)));
  if (is_source && node.common.on_failure)
    graph.error(mark_of(spec, "on_failure"),
                fmt::format("{}.on_failure: {} is a source, so every output is after it; set it "
                            "on a node that leads to some of the outputs only",
                            spec.name, node.info->name));
  const bool are_sources = check_from_sources(graph, node);
  const bool takes_several = node.info->traits.joins || node.info->traits.pairs || are_sources;
  if (node.common.from.size() > 1 && !takes_several)
    graph.error(mark_of(spec, "from"),
                fmt::format("{}.from: {} takes one input, but {} are given ({}){}", spec.name,
                            node.stage_name, node.common.from.size(),
                            fmt::join(node.common.from, ", "), which_to_keep(graph, node)));
  const bool has_too_many =
      (node.inputs.size() > 1 && !takes_several) || never_together(graph, node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (graph.node(node.inputs[i].node).info != nullptr && !is_source && !has_too_many)
      check_pair(graph, i, node);
  if (node.info->traits.joins && node.inputs.size() == node.common.from.size())
    check_join(graph, node);
  if (node.info->traits.pairs && node.inputs.size() == node.common.from.size() &&
      !node.inputs.empty())
    check_pairs(graph, node);
}

// Removes nodes without a predecessor until none is left: the remaining nodes are in a cycle or
// after one.
bool check_cycles(GraphDraft& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  std::set<int> left;
  for (int i = 0; i < count; ++i) left.insert(i);
  const auto is_before = [&](const PlanInput& in) { return left.contains(in.node); };
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < count; ++i) {
      const std::vector<PlanInput>& from = graph.node(i).inputs;
      if (left.contains(i) && std::none_of(from.begin(), from.end(), is_before))
        more = left.erase(i) > 0;
    }
  }
  std::set<int> reported;
  for (const int start : left) {
    // Follows inputs upstream until a node repeats.
    std::vector<int> way;
    int at = start;
    while (std::find(way.begin(), way.end(), at) == way.end()) {
      way.push_back(at);
      const std::vector<PlanInput>& from = graph.node(at).inputs;
      at = std::find_if(from.begin(), from.end(), is_before)->node;
    }
    if (at != start || reported.contains(at)) continue;
    std::string text;
    for (int n : way) {
      reported.insert(n);
      text.insert(0, graph.node(n).name + " -> ");
    }
    const NodeSpec& spec = graph.node(start);
    graph.error(
        mark_of(spec, "from"),
        fmt::format("{}.from: the graph has a cycle: {} -> {}; data flows from the source to the "
                    "sinks, so one of these nodes must take its input from another node",
                    spec.name, spec.name, text.substr(0, text.size() - 4)));
  }
  return !left.empty();
}

void check_shape(GraphDraft& graph) {
  // If a node has no input, only that is reported: it may be the node that should take an unused
  // output.
  const bool are_connected =
      std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const PlanNode& d) {
        return d.info != nullptr &&
               (d.info->traits.kind == StageKind::source || d.behind || !d.inputs.empty());
      });
  const std::set<int> left = left_by_mistake(graph);
  int sinks = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const PlanNode& d = graph.node(i);
    if (d.info == nullptr) continue;
    if (d.info->traits.kind == StageKind::sink && ++sinks == kMostSinks + 1)
      graph.error(d.mark, fmt::format("{}: a graph has at most {} sinks, this is one more", d.name,
                                      kMostSinks));
    if (d.info->traits.kind == StageKind::sink) continue;
    if (are_connected && graph.readers_of(i).empty() && !d.behind && !left.contains(i) &&
        !never_together(graph, d)) {
      const bool is_second = d.info->traits.kind == StageKind::source && graph.sources.size() > 1;
      graph.error(
          d.mark,
          fmt::format(
              "{}: no node takes its output ({}); {}", d.name, plural(graph.port_of(i).name),
              is_second ? fmt::format("name all sources in a list: from: {}", all_sources(graph))
                        : fmt::format("write a node with from: {} whose stage is a sink{}", d.name,
                                      sinks_of(graph, i))));
    }
    if (are_connected) check_outputs(graph, i);
  }
  const bool all_known = std::all_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const PlanNode& d) { return d.info != nullptr; });
  if (graph.sources.empty() && all_known)
    graph.error(graph.spec.nodes.empty() ? Mark{} : graph.spec.nodes.front().mark,
                fmt::format("the graph has no source; it starts with a stage such as {}",
                            some_source(graph.registry)));
  check_expansion(graph);
}

}  // namespace melflow
