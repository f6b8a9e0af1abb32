// melflow stages: what a pipeline can be made of.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/verbs/verbs.h"
#include "config/reference.h"
#include "pipeline/plan.h"
#include "pipeline/text.h"

namespace melflow {
namespace {

struct StagesArguments {
  std::string name;
  bool markdown = false;
  bool json_schema = false;
};

void print_options(const Schema& schema) {
  for (const OptionRow& row : option_rows(schema)) {
    std::string type = row.type;
    if (!row.allowed.empty()) type += (row.type == "choice" ? ": " : ", ") + row.allowed;
    if (!row.default_text.empty()) type += "; default " + row.default_text;
    say(stdout, "  {}  ({})\n      {}\n", row.name, type, row.doc);
  }
}

int print_stage(const std::string& name) {
  const Registry& registry = Registry::global();
  const StageInfo* stage = registry.find(name);
  if (stage == nullptr) {
    complain(fmt::format("there is no stage '{}'{}; `melflow stages` lists them", excerpt(name),
                         did_you_mean(name, registry.names())));
    return kUsage;
  }
  say(stdout, "{}: {}\n\n  {}\n\nOptions:\n", stage->name, stage->summary,
      ports_text(stage->traits));
  print_options(stage->configure()->schema());
  say(stdout, "\nOptions of every node:\n");
  NodeOptions common;
  Schema schema;
  common.describe(schema);
  print_options(schema);
  return kDone;
}

int print_list() {
  for (const StageInfo* stage : Registry::global().all())
    say(stdout, "{:<12}  {:<24}  {}\n", stage->name, ports_text(stage->traits), stage->summary);
  say(stdout, "\n`melflow stages NAME` shows the options of one.\n");
  return kDone;
}

}  // namespace

Action add_stages(CLI::App& verb) {
  auto arguments = std::make_shared<StagesArguments>();
  verb.add_option("NAME", arguments->name,
                  "the stage to show with its options; without it all stages are listed");
  CLI::Option* markdown = verb.add_flag("--markdown", arguments->markdown,
                                        "prints all stages as Markdown (docs/stages.md)");
  verb.add_flag("--json-schema", arguments->json_schema,
                "prints a JSON Schema of configurations, for editors")
      ->excludes(markdown);
  verb.footer("Example:\n  melflow stages mel");
  return [arguments]() -> int {
    if (!arguments->name.empty()) return print_stage(arguments->name);
    if (!arguments->markdown && !arguments->json_schema) return print_list();
    put(stdout, arguments->markdown ? stages_markdown() : schema_json());
    return kDone;
  };
}

}  // namespace melflow
