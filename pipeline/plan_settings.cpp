#include "pipeline/plan_settings.h"

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

// What is before the node, and its own settings.
void record_feature_settings(Plan& plan, const PlanNode& n) {
  std::vector<Value> stages;
  if (n.from >= 0)
    stages = plan.nodes[static_cast<std::size_t>(n.from)].stage->feature_settings().items();
  if (n.info->affects_features) {
    Value entry = Value::map({});
    entry.set("stage", Value::scalar(n.info->feature_stage));
    const Value own = n.stage->settings().value_or(n.config->schema().echo(false));
    for (const Value::Entry& e : own.entries()) entry.set(e.key, e.value);
    stages.push_back(std::move(entry));
  }
  n.stage->set_feature_settings(Value::list(std::move(stages)));
}

Value settings_of(const GraphSpec& spec, const Plan& plan, const PlanNode& n) {
  const NodeSpec& written = *std::find_if(spec.nodes.begin(), spec.nodes.end(),
                                          [&n](const NodeSpec& s) { return s.name == n.name; });
  Value node = Value::map({});
  node.set("stage", *written.options.find("stage"));
  const PlanNode* from = &n;
  while (from->from >= 0 && (from->written == n.written || from->is_inserted))
    from = &plan.nodes[static_cast<std::size_t>(from->from)];
  if (from->written != n.written) node.set("from", Value::scalar(from->written));
  node.set("concurrency", Value::scalar(std::to_string(n.concurrency)));
  if (n.from >= 0) {
    node.set("queue", Value::scalar(n.has_auto_queue() ? "auto" : std::to_string(n.queue)));
    node.set("start_at", Value::scalar(number_text(n.start_at)));
  } else {
    node.set("files_per_task",
             Value::scalar(n.files_per_task > 0 ? std::to_string(n.files_per_task) : "auto"));
  }
  const Value own = n.config->schema().echo();
  for (const Value::Entry& e : own.entries()) node.set(e.key, e.value);
  return node;
}

}  // namespace

void record_settings(const GraphSpec& spec, Plan& plan) {
  Value graph = Value::map({});
  for (const PlanNode& n : plan.nodes) {
    record_feature_settings(plan, n);
    // What is put around a node comes from its options.
    if (n.name == n.written) graph.set(n.name, settings_of(spec, plan, n));
  }
  Value config = Value::map({});
  config.set("version", Value::scalar("1"));
  Value memory = Value::map({});
  memory.set("host", Value::scalar(to_text(Bytes{plan.host_memory})));
  memory.set("pinned", Value::scalar(to_text(Bytes{plan.settings.pinned_memory})));
  memory.set("device", Value::scalar(to_text(Bytes{plan.settings.device_memory})));
  config.set("memory", memory);
  config.set("max_failures", OptionType<CountOrShare>::echo(plan.max_failures));
  config.set("graph", graph);
  plan.settings.config = std::move(config);
  if (const auto& file = plan.nodes.front().mark.file) plan.settings.file = *file;
  plan.settings.sinks =
      static_cast<int>(std::count_if(plan.nodes.begin(), plan.nodes.end(), [](const PlanNode& n) {
        return n.info->traits.kind == StageKind::sink;
      }));
}

}  // namespace melflow
