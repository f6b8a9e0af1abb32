#include "pipeline/plan/graph_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/plan/missing_nodes.h"

namespace melflow {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads the stage's own options; `common`: those that every node has.
void read_stage_options(GraphDraft& graph, PlanNode& d, const Value& own, const Schema& common) {
  const std::string path = d.name + ".";
  const auto names = d.config->schema().names();
  // All are read together, so that an option that implies others is read first.
  Value known_options = Value::map({});
  for (const Value::Entry& e : own.entries()) {
    if (contains(names, e.key)) {
      known_options.entries().push_back(e);
      continue;
    }
    std::string advice = advice_on(e.key, {&d.config->schema(), &common}, e.value);
    if (advice.empty())
      advice = names.empty() ? std::string("; it has no options of its own: remove this")
                             : fmt::format("; `melflow stages {}` lists its options", d.stage_name);
    graph.error(e.key_mark, fmt::format("{}{}: unknown option of {}{}", path, excerpt(e.key),
                                        d.stage_name, advice));
  }
  d.config->schema().read(known_options, path, graph.problems);
  d.config->schema().find_unused(known_options, path, graph.unused);
  const int limit = d.info->traits.max_concurrency;
  if (limit > 0 && d.common.concurrency.value_or(limit) > limit)
    graph.error(mark_of(d, "concurrency"),
                fmt::format("{}.concurrency: {} is out of range, {} takes at most {}", d.name,
                            *d.common.concurrency, d.stage_name, limit));
}

// Reports a node that names no stage.
void no_stage(GraphDraft& graph, const NodeSpec& spec, const Value& own, const Schema& common) {
  const Value* written = spec.options.find("stage");
  if (written != nullptr && !written->is_null() && !written->is_scalar()) return;  // is refused
  if (written != nullptr && written->is_missing())
    return graph.error(written->mark(), spec.name +
                                            ".stage: has no value; write the name of a "
                                            "stage: `melflow stages` lists them");
  if (written != nullptr && written->is_null())
    return graph.error(written->mark(), fmt::format("{}.stage: null is YAML's word for no value{}",
                                                    spec.name, graph.registry.advice_on("null")));
  std::string advice = "; `melflow stages` lists the stages";
  if (is_put_in(graph.registry, spec.name))
    advice = fmt::format(
        "; without stage and from, {0} sets the options of a node that is inserted where one is "
        "missing, but none is missing here: write stage: {0} and from: NODE",
        spec.name);
  for (const Value::Entry& e : own.entries()) {
    if (e.key.starts_with("stage:")) advice = "; write 'stage: NAME' with a space after the ':'";
    const auto others = common.other_names();
    const bool is_other = std::any_of(others.begin(), others.end(), [&](const OtherName& other) {
      return other.name == e.key && other.here == "stage";
    });
    if (is_other || !did_you_mean(e.key, {"stage"}).empty())
      advice = fmt::format("; write 'stage' instead of '{}'", excerpt(e.key));
  }
  graph.error(spec.mark, fmt::format("{}: 'stage' is missing{}", spec.name, advice));
}

// Returns the node of that name, or -1.
int find_node(const GraphDraft& graph, const PlanNode& reader, const std::string& name) {
  const auto find = [&](const std::string& wanted) {
    const auto it = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [&](const PlanNode& d) { return d.name == wanted; });
    return it == graph.nodes.end() ? -1 : static_cast<int>(it - graph.nodes.begin());
  };
  const int found = find(name);
  if (found < 0) return -1;
  // Outside its chain, the chain's name refers to its last node.
  const std::string& written = graph.node(found).written;
  return written != reader.written && name == written ? find(graph.outlets.at(written)) : found;
}

// Names the nodes that `from` means or could mean.
std::string others_than(const std::string& reader, const std::string& from,
                        std::vector<std::string> names) {
  constexpr std::size_t kMostNamed = 20;
  std::erase(names, reader);
  std::string near = did_you_mean(from, names);
  if (!near.empty() || names.empty() || names.size() > kMostNamed) return near;
  return fmt::format("; the others are {}", fmt::join(names, ", "));
}

// Finds "route.long" if "route" has the output "long"; node -1 if there is none.
PlanInput find_output(const GraphDraft& graph, const PlanNode& reader, const std::string& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == text.npos) return {};
  const int node = find_node(graph, reader, text.substr(0, dot));
  if (node < 0) return {};
  const std::vector<std::string>& outputs = graph.node(node).outputs;
  const auto it = std::find(outputs.begin(), outputs.end(), text.substr(dot + 1));
  if (it == outputs.end()) return {};
  return {node, static_cast<int>(it - outputs.begin())};
}

}  // namespace

void GraphDraft::find_sources() {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (const StageInfo* info = nodes[i].info;
        info != nullptr && info->traits.kind == StageKind::source)
      sources.push_back(static_cast<int>(i));
}

std::vector<int> GraphDraft::readers_of(int node) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (std::any_of(nodes[i].inputs.begin(), nodes[i].inputs.end(),
                    [node](const PlanInput& in) { return in.node == node; }))
      out.push_back(static_cast<int>(i));
  return out;
}

const NodeSpec& GraphDraft::written(const PlanNode& node) const {
  return *std::find_if(spec.nodes.begin(), spec.nodes.end(),
                       [&](const NodeSpec& n) { return n.name == node.written; });
}

PortType GraphDraft::port_of(PlanInput from) const {
  const PlanNode* at = &node(from.node);
  while (at->info != nullptr && !at->info->ports.empty() && !at->inputs.empty()) {
    from = at->inputs.front();
    at = &node(from.node);
  }
  if (at->info == nullptr) return {};
  const StageTraits& traits = at->info->traits;
  return from.output < 0 || traits.outs.empty()
             ? traits.out
             : traits.outs[static_cast<std::size_t>(from.output)];
}

void read_node(GraphDraft& graph, PlanNode& node) {
  const NodeSpec& spec = node;
  Schema common;
  node.common.describe(common);
  const std::vector<std::string> common_names = common.names();
  Value own = Value::map({}, spec.options.mark());
  Value shared = Value::map({}, spec.options.mark());
  for (const Value::Entry& e : spec.options.entries())
    if (e.key != "stage" || !e.value.is_missing())  // no_stage() reports it
      (contains(common_names, e.key) ? shared : own).entries().push_back(e);
  common.read(shared, spec.name + ".", graph.problems);
  for (const PlanNode* other = graph.nodes.data(); other != &node; ++other)
    if (other->name == spec.name)
      graph.error(spec.mark, fmt::format("{}: there are two nodes of this name", spec.name));
  if (node.common.stage.empty()) {
    no_stage(graph, spec, own, common);
  } else if ((node.info = graph.registry.find(node.common.stage)) == nullptr) {
    const std::string near = graph.registry.advice_on(node.common.stage);
    graph.error(
        mark_of(spec, "stage"),
        fmt::format("{}: unknown stage '{}'{}", spec.name, excerpt(node.common.stage),
                    near.empty() ? "; `melflow stages` lists all stages, and --plugin FILE adds "
                                   "those of a plug-in"
                                 : near));
  } else {
    if (node.stage_name.empty()) node.stage_name = node.info->name;
    node.config = node.info->configure();
    if (node.info->outputs) node.outputs = node.info->outputs(spec);
    read_stage_options(graph, node, own, common);
  }
}

void connect(GraphDraft& graph, PlanNode& node) {
  const NodeSpec& spec = node;
  for (const std::string& from : node.common.from) {
    PlanInput in{find_node(graph, node, from)};
    if (in.node < 0) in = find_output(graph, node, from);
    const std::string before_dot = from.substr(0, from.rfind('.'));
    const int named = in.node < 0 ? find_node(graph, node, before_dot) : -1;
    if (named >= 0 && graph.node(named).outputs.empty() && graph.node(named).info != nullptr &&
        graph.node(named).info->outputs) {
      continue;  // check_input() reports that node
    }
    if (named >= 0 && graph.node(named).outputs.empty()) {
      graph.error(
          mark_of(spec, "from"),
          fmt::format(
              "{}.from: there is no output '{}'; {} ({}) has a single output: write from: {}",
              spec.name, excerpt(from), before_dot, graph.node(named).common.stage, before_dot));
    } else if (in.node < 0) {
      std::vector<std::string> names;
      for (const PlanNode& other : graph.nodes) {
        if (other.outputs.empty()) names.push_back(other.name);
        for (const std::string& o : other.outputs) names.push_back(other.name + "." + o);
      }
      graph.error(mark_of(spec, "from"),
                  fmt::format("{}.from: there is no {} '{}'{}", spec.name,
                              from.find('.') == from.npos ? "node" : "node or output",
                              excerpt(from), others_than(node.name, from, names)));
    } else if (const PlanNode& up = graph.node(in.node); in.output < 0 && !up.outputs.empty()) {
      graph.error(
          mark_of(spec, "from"),
          fmt::format("{}.from: the outputs of {} ({}) have names; write one: {}.{}", spec.name,
                      from, up.common.stage, from, fmt::join(up.outputs, ", " + from + ".")));
    } else {
      node.inputs.push_back(in);
    }
  }
}

}  // namespace melflow
