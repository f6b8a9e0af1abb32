// melflow validate: checks everything that can be checked without running.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/explain.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/warned_config_error.h"
#include "stages/corpus/corpus_listing.h"

namespace melflow {
namespace {

// Counts nodes as written: the plan merges several sources into one node.
std::size_t node_count(const Plan& plan) {
  return plan.nodes.size() + (plan.sources.empty() ? 0 : plan.sources.size() - 1);
}

// Checks the lists of the corpus: problems that would end a run are errors, the others warnings.
void check_lists(Plan& plan) {
  const auto* source = dynamic_cast<const ReadsLists*>(plan.nodes.front().stage.get());
  if (source == nullptr) return;
  const Mark mark = plan.sources.empty() ? plan.nodes.front().mark : Mark{};
  try {
    source->check_lists([&](const std::string& remark) {
      plan.warnings.push_back({mark, remark});
    });
  } catch (const RunError& e) {
    Problems problems;
    problems.add(mark, e.what());
    throw WarnedConfigError(std::move(problems), std::move(plan.warnings));
  }
}

Plan checked_plan(const PlanArguments& arguments) {
  Plan plan = arguments.load();
  check_lists(plan);
  return plan;
}

int validate_as_json(const PlanArguments& arguments) {
  nlohmann::ordered_json out{{"ok", true}};
  try {
    const Plan plan = checked_plan(arguments);
    out["nodes"] = node_count(plan);
    out["workers"] = plan.workers;
    out["memory"] = plan.host_memory;
    out["largest_block"] = plan.largest_block;
    out["problems"] = nlohmann::ordered_json::array();
    out["warnings"] = problems_json(plan.warnings);
    out["config"] = config_json(plan);
  } catch (const ConfigError& e) {
    out["ok"] = false;
    out["problems"] = problems_json(e.problems().sorted());
    out["warnings"] = problems_json(warnings_beside(e));
  }
  put(stdout, json_text(out));
  return out["ok"] ? kDone : kConfiguration;
}

int validate(const PlanArguments& arguments, std::optional<Explained> explained) {
  const Plan plan = checked_plan(arguments);
  if (explained) put(stdout, explain_text(plan, *explained));
  for (const Problem& w : plan.warnings) say(stdout, "warning: {}\n", w.str());
  say(stdout, "ok{}: {}, memory {}, largest block {}, {}\n",
      plan.warnings.empty() ? "" : ", " + plural(plan.warnings.size(), "warning"),
      plural(node_count(plan), "node"), mebibytes_text(plan.host_memory),
      mebibytes_text(plan.largest_block), plural(static_cast<std::size_t>(plan.workers), "worker"));
  return kDone;
}

}  // namespace

Action add_validate(CLI::App& verb) {
  auto arguments = std::make_shared<PlanArguments>();
  auto json = std::make_shared<bool>(false), explains = std::make_shared<bool>(false),
       without_defaults = std::make_shared<bool>(false);
  arguments->add_to(verb);
  verb.add_flag("--json", *json, "prints a JSON document instead, with the whole configuration");
  verb.add_flag("--explain", *explains,
                "prints what crosses each edge, and every option with its value and where the "
                "value comes from")
      ->excludes("--json");
  verb.add_flag("--no-defaults", *without_defaults,
                "prints only options that are set, in a file or by --set")
      ->needs("--explain");
  verb.footer("Example:\n  melflow validate mine.yaml --var DATA=clips --var OUT=mine.h5");
  return [arguments, json, explains, without_defaults] {
    if (*json) return validate_as_json(*arguments);
    std::optional<Explained> explained;
    if (*explains) explained = *without_defaults ? Explained::what_is_set : Explained::every_option;
    return validate(*arguments, explained);
  };
}

}  // namespace melflow
