#include "apps/verbs/tunable_options.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "config/document.h"
#include "config/yaml_text.h"
#include "pipeline/base/cpu.h"

namespace melflow {
namespace {

constexpr const char* kAuto = "auto";

// Options of stages, and values that were faster on some machine. Safety options, such as
// checkpoint, are not listed.
struct Worth {
  const char* option;
  std::vector<std::string> values;
};
const std::vector<Worth>& worth_trying() {
  static const std::vector<Worth> kWorth{
      {"buffer", {"1MiB"}},
      {"depth", {"8", "64"}},
      {"engine", {"io_uring"}},
      {"whole", {"1MiB", "16MiB"}},
      {"block", {"256KiB", "2MiB"}},
      {"files", {"4", "32"}},
      {"level", {"1"}},
  };
  return kWorth;
}

std::string without_quotes(const std::string& text) {
  if (text == "null") return kAuto;
  return text.size() > 1 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

TunableOption option_of(const std::string& node, const std::string& option, std::string usual,
                        std::vector<std::string> others, const Value* written) {
  TunableOption out{node.empty() ? option : node + "." + option, node, std::move(usual), {}, ""};
  out.present = written == nullptr ? out.usual : written->text();
  for (std::string& value : others)
    if (value != out.usual && value != out.present) out.others.push_back(std::move(value));
  return out;
}

void add_options_of(const PlanNode& node, const std::vector<std::string>& cores,
                    std::vector<TunableOption>& out) {
  const auto add = [&](const char* option, std::string usual, std::vector<std::string> others) {
    out.push_back(option_of(node.name, option, std::move(usual), std::move(others),
                            node.options.find(option)));
  };
  if (node.inputs.empty()) {
    add("files_per_task", kAuto, {"4", "16"});
  } else {
    if (node.stage->traits().max_concurrency != 1) add("concurrency", kAuto, cores);
    add("queue", kAuto, {"64"});
  }
  for (const Field& f : node.config->schema().fields())
    for (const Worth& w : worth_trying())
      if (f.is_tuning && f.name == w.option)
        add(w.option, without_quotes(f.default_text), w.values);
}

bool is_same(const Value& a, const Value& b) {
  if (!a.is_map() || !b.is_map()) return to_json(a) == to_json(b);
  return a.entries().size() == b.entries().size() &&
         std::all_of(a.entries().begin(), a.entries().end(), [&](const Value::Entry& e) {
           const Value* other = b.find(e.key);
           return other != nullptr && is_same(e.value, *other);
         });
}

// Returns the file's text with these values, if it means the same as the pipeline with them as
// --set; else "".
std::string text_with(const PlanArguments& arguments, const std::vector<NewValue>& values) {
  const std::string file = find_pipeline(arguments.file);
  std::set<std::string> asked;
  Value by_text, by_sets;
  LoadOptions options = arguments.overrides.load_options();
  options.asked = &asked;
  const std::string text = edited_text(read_configuration(file), file, values);
  try {
    options.filled_in = &by_text;
    (void)load_plan_text(text, file, options);
    options.filled_in = &by_sets;
    for (const NewValue& v : values) options.sets.push_back({v.option, v.value});
    (void)load_plan(file, options);
  } catch (const ConfigError&) {
    return "";
  }
  return is_same(by_text, by_sets) ? text : "";
}

}  // namespace

std::vector<TunableOption> tunable_options(const PlanArguments& arguments) {
  const Plan plan = arguments.load();
  const int available = available_cpus();
  const std::vector<std::string> cores{std::to_string(available), std::to_string(2 * available)};
  std::vector<TunableOption> out;
  if (!arguments.workers) {
    Value filled;
    LoadOptions options = arguments.overrides.load_options();
    options.filled_in = &filled;
    (void)load_plan(find_pipeline(arguments.file), options);
    out.push_back(option_of("", "workers", kAuto, cores, filled.find("workers")));
  }
  for (const PlanNode& node : plan.nodes)
    if (node.name == node.written) add_options_of(node, cores, out);
  // Removes options that cannot be changed in the file, as a variable or --set gives their value.
  std::erase_if(out, [&](const TunableOption& o) {
    const std::string other = o.others.empty() ? o.usual : o.others.front();
    return text_with(arguments, {{o.name, other, "tune"}}).empty();
  });
  return out;
}

std::string tuned_text(const PlanArguments& arguments, const Settings& changes,
                       const std::vector<std::string>& remarks) {
  std::vector<NewValue> values;
  for (std::size_t i = 0; i < changes.size(); ++i)
    values.push_back({changes[i].first, changes[i].second, remarks[i]});
  std::string out = text_with(arguments, values);
  if (out.empty())
    throw RunError(
        fmt::format("{}: the new values cannot be put into this text; use --json, and write them "
                    "there",
                    arguments.file));
  return out;
}

}  // namespace melflow
