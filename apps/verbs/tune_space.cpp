#include "apps/verbs/tune_space.h"

#include <algorithm>
#include <string>

#include "pipeline/cpu.h"

namespace melflow {
namespace {

constexpr int kFarthest = 4;  // times the cores: of workers, and of what runs on them

std::string text_of(const Value* value) {
  return value == nullptr || value->is_null() ? "auto" : value->text();
}

SearchedOption option_of(const Field& field, const std::string& name, const Value* written,
                         const std::string& now) {
  SearchedOption out;
  out.name = name;
  out.now = now;
  out.is_written = written != nullptr;
  out.choices = field.choices;
  out.is_size = field.type.starts_with("size");
  out.lowest = field.lowest.value_or(1);
  out.highest = field.highest.value_or(1e9);
  std::string otherwise = field.default_text;
  std::erase(otherwise, '"');
  out.otherwise = otherwise == "null" ? "auto" : otherwise;
  return out;
}

}  // namespace

std::vector<SearchedOption> searched_options(const PlanArguments& arguments) {
  Value configuration;
  LoadOptions options = arguments.overrides.load_options();
  options.filled_in = &configuration;
  const Plan plan = load_plan(find_pipeline(arguments.file), options);
  const int most = kFarthest * available_cpus();

  std::vector<SearchedOption> out;
  if (!arguments.workers) {
    const Value* written = configuration.find("workers");
    out.push_back({"workers",
                   text_of(written),
                   written != nullptr,
                   "auto",
                   {},
                   1,
                   static_cast<double>(most)});
  }
  NodeOptions node_options;
  Schema of_every_node;
  node_options.describe(of_every_node);
  for (const PlanNode& node : plan.nodes) {
    const bool is_of_this_file = node.mark.file && *node.mark.file == find_pipeline(arguments.file);
    if (node.is_inserted || node.name != node.written || !is_of_this_file) continue;
    for (const Field& field : of_every_node.fields()) {
      const bool is_of_source = field.name == "files_per_task";
      if (!field.is_searched || is_of_source != node.inputs.empty()) continue;
      const Value* written = node.options.find(field.name);
      out.push_back(option_of(field, node.name + "." + field.name, written, text_of(written)));
      if (field.name == "concurrency") out.back().highest = most;
    }
    const Value now = node.config->schema().echo();
    for (const Field& field : node.config->schema().fields())
      if (field.is_searched)
        out.push_back(option_of(field, node.name + "." + field.name, node.options.find(field.name),
                                text_of(now.find(field.name))));
  }
  const std::vector<Assignment> sets = arguments.overrides.assignments();
  std::erase_if(out, [&](const SearchedOption& option) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](const Assignment& set) { return set.name == option.name; });
  });
  return out;
}

}  // namespace melflow
