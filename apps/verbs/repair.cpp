// melflow repair: recomputes damaged rows of an output.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/dry_run.h"
#include "apps/verbs/output_check.h"
#include "apps/verbs/output_corpus.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watched_run.h"
#include "config/load.h"
#include "config/yaml_text.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

struct RepairArguments {
  std::string file;
  std::optional<int> workers;
  StoredOverrides stored;
  bool dry_run = false;
};

/// The findings about an output in one file, or in one file per split.
struct Examined {
  std::string path;  ///< the path that the sink was given
  std::shared_ptr<FrozenCorpus> corpus;
  std::map<std::string, std::vector<std::size_t>> damaged;  ///< damaged entries of each file
  std::map<std::string, std::string> of;  ///< damaged recordings and the files of their rows
  std::size_t kept = 0;
};

void check_index(const FeatureFile& file) {
  if (file.is_index_as_written()) return;
  throw RunError(file.path() +
                 ": cannot be repaired: its index is not what was written, so that it is "
                 "not known which rows are whose. Copy it again, or rebuild it (overwrite: true)");
}

Examined examine(const FeatureFile& named) {
  Examined out;
  out.path = path_of_all(named);
  std::vector<std::unique_ptr<const FeatureFile>> files;
  std::vector<FilesOf> all;
  for (const std::string& path : files_of_all(named)) {
    files.push_back(std::make_unique<const FeatureFile>(path));
    const FeatureFile& file = *files.back();
    if (file.text("run_hash") != named.text("run_hash"))
      throw RunError(fmt::format(
          "{}: this file is not of the same run as {}, so they cannot be repaired together; "
          "`melflow update` of their pipeline makes them of one run",
          path, named.path()));
    check_index(file);
    CheckedRows found = check_rows(file);
    out.kept += found.right + found.unknown;
    for (const std::size_t i : found.wrong) out.of[file.files()[i].path] = path;
    if (!found.wrong.empty()) out.damaged[path] = std::move(found.wrong);
    std::vector<std::size_t> every(file.files().size());
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = i;
    all.push_back({&file, std::move(every)});
  }
  out.corpus = corpus_of(all);
  return out;
}

int tell(const Examined& found, const Remarks& remarks) {
  std::map<std::string, std::string> lost;
  for (const Remark& remark : remarks)
    if (remark.entry.outcome != Outcome::ok && found.of.contains(remark.name))
      lost[remark.name] = fmt::format("{}: {}", remark.entry.stage, remark.entry.reason);
  std::string text;
  for (const auto& [name, path] : found.of)
    if (!lost.contains(name)) text += fmt::format("  {}: {}\n", path, one_line(name));
  if (!text.empty())
    text = fmt::format("recomputed, since the rows were not what was written:\n{}", text);
  if (!lost.empty()) {
    text += "their rows were not what was written and are gone; `melflow update` tries again:\n";
    for (const auto& [name, why] : lost)
      text += fmt::format("  {}: {}: {}\n", found.of.at(name), one_line(name), one_line(why));
  }
  put(stdout, fmt::format("{}kept: the rows of {}\n", text, plural(found.kept, "file")));
  return lost.empty() ? kDone : kSomeFailed;
}

int repair(const RepairArguments& arguments) {
  LoadOptions options = arguments.stored.load_options(arguments.workers);
  options.has_all_options = true;
  Examined found;
  Value config;
  {
    const FeatureFile file(arguments.file);
    check_index(file);
    if (!file.complete())
      throw RunError(file.path() +
                     ": this file is not complete; the command that began it goes on with it");
    found = examine(file);
    if (found.damaged.empty()) {
      put(stdout,
          fmt::format("{}: the rows are what was written; nothing is changed\n", found.path));
      return kDone;
    }
    const Plan made = plan_of(file, options);
    const PlanNode& sink = only_sink(made, file.path());
    check_root(made, file);
    config = made.settings.config;
    options.sets.push_back({sink.name + ".path", yaml_quoted(found.path)});
  }
  Plan plan = load_plan_text(to_json(config), found.path + ": config", options);
  plan.settings.config = std::move(config);
  plan.allow_failures();
  set_task(plan.services, {.corpus = std::move(found.corpus),
                           .update = Update::compact,
                           .damaged = found.damaged,
                           .resume = {Resume::When::automatic,
                                      [](const std::string& text) { say(stderr, "{}\n", text); }}});
  if (arguments.dry_run) return dry_run(std::move(plan), kQuietly).print(stdout);
  Runner runner(std::move(plan));
  const QuietRun ran = run_quietly(
      runner,
      "stopped before the end; the output is what it was before, and the same command goes on");
  return ran.failure ? *ran.failure : tell(found, runner.remarks());
}

}  // namespace

Action add_repair(CLI::App& verb) {
  auto arguments = std::make_shared<RepairArguments>();
  verb.add_option(
          "FILE", arguments->file,
          "an output: .h5, .npy or .ark; where each split has a file of its own, any of them")
      ->required();
  add_workers(verb, arguments->workers, "threads; 0: as many as there are cores");
  arguments->stored.add_to(verb);
  verb.add_flag("--dry-run", arguments->dry_run, "shows what would be recomputed; changes nothing");
  verb.footer(
      "Every file's rows are compared with their hash, as by `melflow verify`. Those that are not "
      "what was\n"
      "written are recomputed by the configuration in the output, in the folder that it was "
      "made in;\n"
      "all others are kept, even if their recordings are gone. The output is replaced as a whole, "
      "when\n"
      "the new one is complete. Exit status: 0 all rows are right now, 3 some recordings gave "
      "none, 1 the\n"
      "output cannot be repaired; it is what it was.\n"
      "\n"
      "Example:\n"
      "  melflow repair features.h5");
  return [arguments] { return repair(*arguments); };
}

}  // namespace melflow
