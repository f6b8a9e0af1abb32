#include "apps/report/explain.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

struct Line {
  std::string name, value, from;
  bool is_set = false;  // in the configuration or on the command line
};

std::string place(const Value& given) {
  return given.mark().file ? given.mark().str() : "as written";
}

// Adds a line for each option of a schema or group: its value and where the value comes from.
// `given`: the written options, or null.
void add_options(const std::vector<Field>& fields, const Value& values, const Value* given,
                 const std::string& prefix, std::vector<Line>& out) {
  for (const Field& f : fields) {
    const Value* value = values.find(f.name);
    const Value* own = given != nullptr && given->is_map() ? given->find(f.name) : nullptr;
    if (value == nullptr) continue;
    if (!f.children.empty() && value->is_map()) {
      add_options(f.children, *value, own, prefix + f.name + ".", out);
      continue;
    }
    const std::string text = to_json(*value);
    out.push_back({prefix + f.name, text,
                   own != nullptr           ? place(*own)
                   : text == f.default_text ? "default"
                                            : "follows from other options",
                   own != nullptr});
  }
}

// Describes a value that the plan chose because the option leaves it open.
Line bound(const char* name, std::string value, const Value& options) {
  const Value* given = options.find(name);
  const bool is_auto = given == nullptr || given->text() == "auto" || given->is_null();
  return {name, std::move(value), is_auto ? "auto" : place(*given), !is_auto};
}

std::string ports(const PlanNode& node) {
  const StageTraits& traits = node.info->traits;
  const bool hands_on = !node.info->ports.empty();
  const char* out = hands_on ? node.port.name : traits.out.name;
  if (traits.kind == StageKind::source) return fmt::format("gives {}", out);
  if (traits.kind == StageKind::sink) return fmt::format("takes {}", node.port.name);
  return fmt::format("{} → {}", node.port.name, out);
}

std::vector<Line> lines_of(const Plan& plan, const PlanNode& node) {
  std::vector<Line> out;
  std::vector<std::string> from;
  for (const PlanInput& in : node.inputs) {
    const PlanNode& up = plan.nodes[static_cast<std::size_t>(in.node)];
    from.push_back(in.output < 0 ? up.name : name_of(plan, in));
  }
  const Value* written_from = node.options.find("from");
  if (!from.empty())
    out.push_back({"from", fmt::format("{}", fmt::join(from, ", ")),
                   written_from != nullptr ? place(*written_from) : "put there",
                   written_from != nullptr});
  out.push_back(bound("concurrency", std::to_string(node.concurrency), node.options));
  if (!node.inputs.empty()) out.push_back(bound("queue", std::to_string(node.queue), node.options));
  if (node.fails_branch) {
    const Value* given = node.options.find("on_failure");
    out.push_back({"on_failure", "branch", given != nullptr ? place(*given) : "of a node before it",
                   given != nullptr});
  }
  const Schema& schema = node.config->schema();
  add_options(schema.fields(), without_secrets(schema.echo()), &node.options, "", out);
  return out;
}

}  // namespace

std::string explain_text(const Plan& plan, Explained which) {
  std::string out;
  std::vector<const PlanNode*> nodes;
  for (const PlanNode& node : plan.sources) nodes.push_back(&node);
  for (const PlanNode& node : plan.nodes)
    if (plan.sources.empty() || !node.inputs.empty()) nodes.push_back(&node);
  for (const PlanNode* at : nodes) {
    const PlanNode& node = *at;
    out += fmt::format("{} ({}): {}\n", node.name, node.info->name, ports(node));
    std::vector<Line> lines = lines_of(plan, node);
    if (which == Explained::what_is_set)
      std::erase_if(lines, [](const Line& l) { return !l.is_set; });
    std::size_t name = 0, value = 0;
    for (const Line& l : lines) {
      name = std::max(name, l.name.size());
      value = std::max(value, std::min<std::size_t>(l.value.size(), 40));
    }
    for (const Line& l : lines)
      out += fmt::format("  {:<{}}  {:<{}}  {}\n", l.name, name, excerpt(l.value, 400), value,
                         one_line(l.from));
  }
  return out;
}

}  // namespace melflow
