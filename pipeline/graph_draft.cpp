#include "pipeline/graph_draft.h"

#include <fmt/format.h>

#include <algorithm>

namespace melflow {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The options of the stage itself; `common`: those that every node has.
void read_stage_options(GraphDraft& graph, NodeDraft& d, const Value& own, const Schema& common) {
  const std::string path = d.spec->name + ".";
  const auto names = d.config->schema().names();
  // Read together, so that an option that implies others is read first.
  Value known_options = Value::map({});
  for (const Value::Entry& e : own.entries()) {
    if (contains(names, e.key)) {
      known_options.entries().push_back(e);
      continue;
    }
    std::string advice = advice_on(e.key, {&d.config->schema(), &common});
    if (advice.empty()) advice = fmt::format("; `melflow stages {}` lists them", d.info->name);
    graph.error(e.key_mark, fmt::format("{}{}: unknown option of {}{}", path, excerpt(e.key),
                                        d.info->name, advice));
  }
  d.config->schema().read(known_options, path, graph.problems);
  d.config->schema().find_unused(known_options, path, graph.unused);
  const int limit = d.info->traits.max_concurrency;
  if (limit > 0 && d.common.concurrency.value_or(limit) > limit)
    graph.error(mark_of(*d.spec, "concurrency"),
                fmt::format("{}.concurrency: {} is out of range, {} takes at most {}", d.spec->name,
                            *d.common.concurrency, d.info->name, limit));
}

}  // namespace

std::vector<int> GraphDraft::readers_of(int node) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (std::find(nodes[i].from.begin(), nodes[i].from.end(), node) != nodes[i].from.end())
      out.push_back(static_cast<int>(i));
  return out;
}

const NodeSpec& GraphDraft::spec_of(const PlanNode& node) const {
  return std::find_if(expanded.begin(), expanded.end(),
                      [&](const ExpandedNode& e) { return e.spec.name == node.name; })
      ->spec;
}

Mark mark_of(const NodeSpec& spec, const std::string& key) {
  if (const Value* v = key.empty() ? nullptr : spec.options.find(key)) return v->mark();
  return spec.mark;
}

void read_node(GraphDraft& graph, const ExpandedNode& expanded) {
  const NodeSpec& spec = expanded.spec;
  NodeDraft d;
  d.spec = &spec;
  d.written = expanded.written;
  d.behind = expanded.behind;
  Schema common;
  d.common.describe(common);
  const std::vector<std::string> common_names = common.names();
  Value own = Value::map({}, spec.options.mark());
  Value shared = Value::map({}, spec.options.mark());
  for (const Value::Entry& e : spec.options.entries())
    (contains(common_names, e.key) ? shared : own).entries().push_back(e);
  common.read(shared, spec.name + ".", graph.problems);
  for (const NodeDraft& other : graph.nodes)
    if (other.spec->name == spec.name)
      graph.error(spec.mark, fmt::format("{}: there are two nodes of this name", spec.name));
  if (d.common.stage.empty()) {
    graph.error(spec.mark, fmt::format("{}: 'stage' is missing; `melflow stages` lists the stages",
                                       spec.name));
  } else if ((d.info = graph.registry.find(d.common.stage)) == nullptr) {
    graph.error(mark_of(spec, "stage"),
                fmt::format("{}: unknown stage '{}'{}", spec.name, excerpt(d.common.stage),
                            did_you_mean(d.common.stage, graph.registry.names())));
  } else {
    d.config = d.info->configure();
    read_stage_options(graph, d, own, common);
  }
  graph.nodes.push_back(std::move(d));
}

void connect(GraphDraft& graph, NodeDraft& node) {
  const NodeSpec& spec = *node.spec;
  std::vector<std::string> names;
  for (const NodeDraft& other : graph.nodes) names.push_back(other.spec->name);
  for (const std::string& from : node.common.from) {
    auto it = std::find(names.begin(), names.end(), from);
    if (it != names.end()) {
      // From outside, a chain's output is that of its last node.
      const std::size_t written = graph.nodes[static_cast<std::size_t>(it - names.begin())].written;
      if (written != node.written && from == graph.spec.nodes[written].name)
        it = std::find(names.begin(), names.end(), graph.outlets[written]);
    }
    if (it == names.end())
      graph.error(mark_of(spec, "from"), fmt::format("{}.from: there is no node '{}'{}", spec.name,
                                                     excerpt(from), did_you_mean(from, names)));
    else
      node.from.push_back(static_cast<int>(it - names.begin()));
  }
}

}  // namespace melflow
