// melflow stages: describes the stages that pipelines can use.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/usage_errors.h"
#include "apps/verbs/verbs.h"
#include "config/reference.h"
#include "pipeline/base/text.h"
#include "pipeline/plan/plan.h"

namespace melflow {
namespace {

struct StagesArguments {
  std::string name;
  bool markdown = false;
  bool json_schema = false;
};

void print_option(const OptionRow& row) {
  std::string type = row.type;
  if (!row.allowed.empty()) type += (row.type.starts_with("choice") ? ": " : ", ") + row.allowed;
  if (!row.default_text.empty()) type += "; default " + row.default_text;
  say(stdout, "  {}  ({})\n      {}\n", row.name, type, row.doc);
}

void print_options(const Schema& schema) {
  for (const OptionRow& row : option_rows(schema)) print_option(row);
}

int print_option(const StageInfo& stage, const std::string& option) {
  const auto config = stage.configure();
  NodeOptions common;
  Schema of_all;
  common.describe(of_all);
  for (const Schema* schema : {&config->schema(), static_cast<const Schema*>(&of_all)})
    for (const OptionRow& row : option_rows(*schema))
      if (row.name == option) {
        print_option(row);
        return kDone;
      }
  std::string advice = advice_on(stage, option, Value::scalar("VALUE"));
  if (advice.empty()) advice = fmt::format("; `melflow stages {}` lists them", stage.name);
  complain(fmt::format("{} has no option '{}'{}", stage.name, excerpt(option), advice));
  return kUsage;
}

// Shows a node of this stage with its required options.
std::string example(const StageInfo& stage) {
  std::string out = fmt::format("{0}: {{stage: {0}", stage.name);
  if (stage.traits.kind != StageKind::source) out += ", from: NODE";
  const auto config = stage.configure();
  for (const Field& f : config->schema().fields())
    if (f.doc.ends_with("; required") || f.name == "root")
      out += fmt::format(", {}: {}", f.name, f.doc.starts_with("folder") ? "FOLDER" : "FILE");
    else if (const std::size_t at = f.type.find("({"); at != f.type.npos && f.default_text == "{}")
      out += fmt::format(", {}: {}", f.name, f.type.substr(at + 1, f.type.size() - at - 2));
  return out + "}";
}

// Returns " (./loudness.so)" for a stage of a plug-in, "" for one that is built in.
std::string plugin_of(const StageInfo& stage) {
  return stage.plugin.empty() ? "" : fmt::format(" ({})", excerpt(stage.plugin));
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns "; options of that name are mel.hop, segment.hop"; "" where no stage has one.
std::string options_named(const std::string& name) {
  std::vector<std::string> found;
  for (const StageInfo* stage : Registry::global().all())
    for (const std::string& option : stage->configure()->schema().names())
      if (option == name) found.push_back(stage->name + "." + option);
  return found.empty() ? "" : fmt::format("; options of that name are {}", fmt::join(found, ", "));
}

// Returns a hint where the name is a preset of a stage; "" where it is none.
std::string preset_named(const std::string& name) {
  for (const StageInfo* stage : Registry::global().all()) {
    if (stage->feature_stage != stage->name) continue;  // device stages have the same presets
    const auto config = stage->configure();
    for (const Field& f : config->schema().fields())
      if (f.name == "preset" && name != "none" &&
          std::find(f.choices.begin(), f.choices.end(), name) != f.choices.end())
        return fmt::format(
            "'{0}' is not a stage but a preset of {1}; write {1}: {{stage: {1}, "
            "from: NODE, preset: {0}}}; `melflow stages {1}.preset` lists all "
            "presets",
            name, stage->name);
  }
  return {};
}

// `asked`: "mel", or "mel.hop" for one option of it.
int print_stage(const std::string& asked) {
  const Registry& registry = Registry::global();
  const std::size_t dot = asked.find('.');
  const std::string name = in_lower_case(asked.substr(0, dot));
  const StageInfo* stage = registry.find(name);
  if (stage == nullptr) {
    if (const std::string preset = preset_named(name); !preset.empty()) {
      complain(preset);
      return kUsage;
    }
    std::string advice = registry.advice_on(name);
    if (advice.empty()) advice = options_named(name);
    complain(fmt::format("there is no stage '{}'{}; `melflow stages` lists them", excerpt(asked),
                         advice));
    return kUsage;
  }
  if (dot != asked.npos) return print_option(*stage, asked.substr(dot + 1));
  say(stdout, "{}: {}{}\n\n  {}\n\nExample:\n  {}\n\nOptions:\n", stage->name, stage->summary,
      plugin_of(*stage), ports_text(stage->traits), example(*stage));
  print_options(stage->configure()->schema());
  say(stdout, "\nOptions of every node:\n");
  NodeOptions common;
  Schema schema;
  common.describe(schema);
  print_options(schema);
  return kDone;
}

// Prints names and ports in columns; where ports are long, the summary follows on the next line.
int print_list() {
  constexpr std::size_t kWidest = 30;
  const auto length = [](const std::string& text) {  // "→" takes three bytes
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
  };
  std::size_t name = 0, ports = 0;
  for (const StageInfo* stage : Registry::global().all()) {
    name = std::max(name, stage->name.size());
    if (const std::size_t n = length(ports_text(stage->traits)); n <= kWidest)
      ports = std::max(ports, n);
  }
  for (const StageInfo* stage : Registry::global().all()) {
    const std::string text = ports_text(stage->traits);
    const std::size_t n = length(text);
    const bool is_long = n > kWidest;
    say(stdout, "{:<{}}  {}{}", stage->name, name, text, std::string(is_long ? 0 : ports - n, ' '));
    if (is_long) say(stdout, "\n{:<{}}", "", name + 2 + ports);
    say(stdout, "  {}{}\n", stage->summary, plugin_of(*stage));
  }
  say(stdout, "\n`melflow stages NAME` shows the options of one.\n");
  return kDone;
}

}  // namespace

Action add_stages(CLI::App& verb) {
  auto arguments = std::make_shared<StagesArguments>();
  verb.add_option("NAME", arguments->name,
                  "the stage to show with its options, or one of its options, such as mel.hop; not "
                  "given: lists all stages");
  CLI::Option* markdown = verb.add_flag("--markdown", arguments->markdown,
                                        "prints all stages as Markdown (docs/stages.md)");
  CLI::Option* schema = verb.add_flag("--json-schema", arguments->json_schema,
                                      "prints a JSON Schema of configurations, for editors");
  schema->excludes(markdown);
  verb.footer("Example:\n  melflow stages mel\n  melflow stages mel.hop");
  return [arguments]() -> int {
    if (!arguments->name.empty()) return print_stage(arguments->name);
    if (!arguments->markdown && !arguments->json_schema) return print_list();
    put(stdout, arguments->markdown ? stages_markdown() : schema_json());
    return kDone;
  };
}

}  // namespace melflow
