#include "pipeline/plan/plan_settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/secrets.h"
#include "pipeline/stage/keeps_files.h"

namespace melflow {
namespace {

// Returns the sources, among several, that an input comes from.
std::set<int> sources_of(const Plan& plan, const PlanInput& input) {
  std::set<int> out, seen;
  for (std::vector<PlanInput> left{input}; !left.empty();) {
    const PlanInput in = left.back();
    left.pop_back();
    if (in.node == 0) {
      out.insert(in.output);
    } else if (seen.insert(in.node).second) {
      const std::vector<PlanInput>& before = plan.nodes[static_cast<std::size_t>(in.node)].inputs;
      left.insert(left.end(), before.begin(), before.end());
    }
  }
  return out;
}

// For inputs made in different ways: lists the sources of each, unless all inputs have all sources.
std::vector<Value> ways_of_sources(const Plan& plan, const PlanNode& n) {
  std::vector<Value> out;
  if (plan.sources.empty()) return out;
  for (const PlanInput& in : n.inputs) {
    std::vector<Value> names;
    for (const int k : sources_of(plan, in))
      names.push_back(Value::scalar(plan.sources[static_cast<std::size_t>(k)].name, {}, true));
    out.push_back(Value::list(std::move(names)));
  }
  const bool are_equal = std::all_of(out.begin(), out.end(), [&out](const Value& names) {
    return to_json(names) == to_json(out.front());
  });
  if (are_equal) out.clear();
  return out;
}

// Which settings of a stage are recorded: its own, and those up to it.
struct SettingsForm {
  std::optional<Value> (Stage::*own)() const;
  const Value& (Stage::*up_to)() const;
};

// Returns the settings of the nodes before this one, and its own.
Value settings_up_to(const Plan& plan, const PlanNode& n, const SettingsForm& form) {
  const auto up_to = [&form](const PlanNode& node) { return (node.stage.get()->*form.up_to)(); };
  std::vector<Value> stages;
  // For one of several outputs: adds the output's name, since the items depend on it.
  const auto before = [&](const PlanInput& in) {
    const PlanNode& up = plan.nodes[static_cast<std::size_t>(in.node)];
    if (up.inputs.empty() && in.output >= 0)  // one of several sources
      return up_to(plan.sources[static_cast<std::size_t>(in.output)]);
    Value out = up_to(up);
    if (in.output >= 0 && up.info->affects_features)
      out.items().back().set(
          "output", Value::scalar(up.outputs[static_cast<std::size_t>(in.output)], {}, true));
    return out;
  };
  if (!n.inputs.empty()) stages = before(n.inputs.front()).items();
  // If inputs were made in different ways, or are joined side by side: the settings of all of them.
  if ((n.info->traits.pairs && n.inputs.size() > 1) ||
      std::any_of(n.inputs.begin(), n.inputs.end(), [&](const PlanInput& in) {
        return to_json(before(in)) != to_json(before(n.inputs.front()));
      })) {
    std::vector<Value> ways;
    for (const PlanInput& in : n.inputs) ways.push_back(before(in));
    Value entry = Value::map({});
    entry.set("stage", Value::scalar(n.info->name));
    entry.set("inputs", Value::list(std::move(ways)));
    if (std::vector<Value> names = ways_of_sources(plan, n); !names.empty())
      entry.set("sources", Value::list(std::move(names)));
    stages = {std::move(entry)};
  }
  // Without secrets: a fingerprint does not depend on the user who reads the corpus.
  const Value own =
      without_secrets((n.stage.get()->*form.own)().value_or(n.config->schema().echo(false)));
  if (n.info->affects_features && !own.is_null()) {
    Value entry = Value::map({});
    entry.set("stage", Value::scalar(n.info->feature_stage));
    for (const Value::Entry& e : own.entries()) entry.set(e.key, e.value);
    stages.push_back(std::move(entry));
  }
  return Value::list(std::move(stages));
}

void record_feature_settings(const Plan& plan, const PlanNode& n) {
  n.stage->set_feature_settings(
      settings_up_to(plan, n, {&Stage::settings, &Stage::feature_settings}));
  n.stage->set_settings_up_to(
      settings_up_to(plan, n, {&Stage::settings_alone, &Stage::settings_up_to}));
}

Value settings_of(const GraphSpec& spec, const Plan& plan, const PlanNode& n) {
  const NodeSpec& written = *std::find_if(spec.nodes.begin(), spec.nodes.end(),
                                          [&n](const NodeSpec& s) { return s.name == n.name; });
  Value node = Value::map({});
  node.set("stage", *written.options.find("stage"));
  std::vector<Value> from;
  for (const PlanInput& in : n.inputs) {
    const PlanNode* up = &plan.nodes[static_cast<std::size_t>(in.node)];
    int output = in.output;
    while (!up->inputs.empty() && (up->written == n.written || up->is_inserted)) {
      output = up->inputs.front().output;
      up = &plan.nodes[static_cast<std::size_t>(up->from())];
    }
    if (up->written == n.written) continue;
    from.push_back(
        Value::scalar(name_of(plan, {static_cast<int>(up - plan.nodes.data()), output})));
  }
  if (from.size() == 1)
    node.set("from", std::move(from.front()));
  else if (!from.empty())
    node.set("from", Value::list(std::move(from)));
  // As written: the value of `auto` depends on the machine, and the report has it.
  const auto set_as_written = [&](const char* key) {
    const Value* value = written.options.find(key);
    node.set(key, Value::scalar(value == nullptr || value->is_null() ? "auto" : value->text()));
  };
  set_as_written("concurrency");
  if (n.fails_branch) node.set("on_failure", Value::scalar("branch"));
  if (n.max_failures.is_set())
    node.set("max_failures", OptionType<CountOrShare>::echo(n.max_failures));
  if (!n.inputs.empty()) {
    set_as_written("queue");
    node.set("start_at", Value::scalar(fmt::format("{}", n.start_at)));
  } else {
    node.set("files_per_task",
             Value::scalar(n.files_per_task > 0 ? std::to_string(n.files_per_task) : "auto"));
  }
  Value own = n.config->schema().echo();
  if (const auto* stage = dynamic_cast<const KeepsFiles*>(n.stage.get())) stage->keep_files(own);
  for (const Value::Entry& e : own.entries()) node.set(e.key, e.value);
  return node;
}

// Returns the plug-ins that stages of the graph were loaded from.
std::vector<Value> plugins_of(const Plan& plan) {
  std::set<std::string> seen{""};
  std::vector<Value> out;
  for (const auto* nodes : {&plan.sources, &plan.nodes})
    for (const PlanNode& n : *nodes)
      if (seen.insert(n.info->plugin).second)
        out.push_back(Value::scalar(n.info->plugin, {}, true));
  return out;
}

}  // namespace

void record_settings(const GraphSpec& spec, Plan& plan) {
  Value graph = Value::map({});
  for (const PlanNode& n : plan.sources) {
    record_feature_settings(plan, n);
    graph.set(n.name, settings_of(spec, plan, n));
  }
  for (const PlanNode& n : plan.nodes) {
    record_feature_settings(plan, n);
    // Nodes added around a written one follow from its options.
    if (n.name == n.written) graph.set(n.name, settings_of(spec, plan, n));
  }
  Value config = Value::map({});
  config.set("version", Value::scalar("1"));
  Value memory = Value::map({});
  memory.set("host", OptionType<Bytes>::echo({plan.host_memory}));
  memory.set("pinned", OptionType<Bytes>::echo({plan.settings.pinned_memory}));
  memory.set("device", OptionType<Bytes>::echo({plan.settings.device_memory}));
  config.set("memory", memory);
  config.set("max_failures", OptionType<CountOrShare>::echo(plan.max_failures));
  config.set("graph", graph);
  if (std::vector<Value> used = plugins_of(plan); !used.empty())
    config.set("plugins", Value::list(std::move(used)));
  std::vector<Secret> secrets;
  plan.settings.config = stored_settings(config, secrets);
  if (const auto& file = plan.nodes.front().mark.file) plan.settings.file = *file;
  plan.settings.sinks =
      static_cast<int>(std::count_if(plan.nodes.begin(), plan.nodes.end(), [](const PlanNode& n) {
        return n.info->traits.kind == StageKind::sink;
      }));
}

}  // namespace melflow
