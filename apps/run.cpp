// melflow run and update: the plan, the run with its progress, and what to say at its end.
#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/format.h"
#include "apps/plan_arguments.h"
#include "apps/report_json.h"
#include "apps/report_text.h"
#include "apps/signals.h"
#include "apps/terminal.h"
#include "apps/verbs.h"
#include "pipeline/runner.h"
#include "stages/device/timeline_observer.h"

namespace melflow {
namespace {

constexpr std::size_t kShownRemarks = 10;

struct RunArguments {
  PlanArguments plan;
  std::string json;  ///< "": none, "-": stdout, else a file
  bool quiet = false;
  bool no_progress = false;
  Update update = Update::none;
};

void write_json(const std::string& where, const nlohmann::ordered_json& document) {
  if (where.empty()) return;
  std::ofstream file;
  if (where != "-") file.open(where, std::ios::binary);
  std::ostream& out = where == "-" ? std::cout : file;
  out << json_text(document) << std::flush;
  if (!out)
    throw RunError((where == "-" ? "stdout" : where) + ": cannot write the JSON report there");
}

int exit_code_of(const RunReport& report) {
  switch (report.ending) {
    case Ending::failed:
      return kRunFailed;
    case Ending::stopped:
      return kStopped;
    case Ending::complete:
      return report.counts.failed > 0 ? kSomeFailed : kDone;
  }
  return kRunFailed;
}

RunReport run_watched(Runner& runner, const RunArguments& arguments) {
  const bool silent = arguments.quiet || arguments.no_progress;
  ProgressDisplay display(runner,
                          silent ? ProgressDisplay::Mode::none : ProgressDisplay::suitable_mode());
  // Signals are blocked before the first thread starts, and end before the display does.
  const StopOnSignal signals(
      [&] {
        runner.stop();
        if (!arguments.quiet)
          display.say("stopping: what is under way will be finished; Ctrl-C again ends at once");
      },
      [&] { display.clear(); });
  display.start();
  RunReport report = runner.run();
  display.clear();
  return report;
}

void print_report(const RunReport& report, const Runner& runner, const std::vector<Remark>& remarks,
                  std::FILE* out) {
  std::string text = summary_text(report, runner.plan());
  // Those of the plan were printed before the run.
  for (std::size_t i = runner.plan().warnings.size(); i < report.warnings.size(); ++i)
    text += "warning: " + report.warnings[i] + "\n";
  if (!remarks.empty()) text += "\nnot plainly ok:\n" + remarks_text(remarks, kShownRemarks);
  put(out, text);
}

int run(const RunArguments& arguments) {
  // A closed pipe behind stderr or stdout is no reason to lose a run; put() passes over it, too.
  std::signal(SIGPIPE, SIG_IGN);
  Plan plan = arguments.plan.load();
  plan.update = arguments.update;
  if (!arguments.quiet)
    for (const Problem& w : plan.warnings) put(stderr, "warning: " + w.str() + "\n");
  const auto observer = timeline_observer(plan);
  Runner runner(std::move(plan), observer.get());
  const RunReport report = run_watched(runner, arguments);
  const std::vector<Remark> remarks = runner.remarks();
  const int code = exit_code_of(report);
  if (!arguments.quiet)
    print_report(report, runner, remarks, arguments.json == "-" ? stderr : stdout);
  write_json(arguments.json, report_json(report, runner.plan(), remarks, code));
  if (report.ending == Ending::failed) put(stderr, "melflow: " + report.error + "\n");
  if (report.ending == Ending::stopped)
    put(stderr, fmt::format("melflow: stopped before the end, {} not run\n",
                            plural(report.counts.not_run, "file")));
  return code;
}

int run_and_always_report(const RunArguments& arguments) {
  try {
    return run(arguments);
  } catch (const ConfigError& e) {
    write_json(arguments.json, not_started_json(e.problems(), kConfiguration));
    throw;
  } catch (const RunError& e) {
    write_json(arguments.json, not_started_json(std::string(e.what()), kRunFailed));
    throw;
  }
}

}  // namespace

namespace {

void add_arguments(CLI::App& verb, RunArguments& arguments) {
  arguments.plan.add_to(verb);
  // A flag, so that FILE needs its '=' and --json may stand before the pipeline.
  verb.add_flag("--json{-}", arguments.json,
                "prints one JSON document on stdout, or writes it to FILE (--json=FILE); all else "
                "goes to stderr");
  verb.add_flag("-q,--quiet", arguments.quiet, "no progress and no summary, only what failed");
  verb.add_flag("--no-progress", arguments.no_progress, "no progress, but the summary");
}

}  // namespace

void add_update(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "update",
      "Runs a pipeline for files that are new or have changed since its output was made.");
  auto arguments = std::make_shared<RunArguments>();
  add_arguments(*verb, *arguments);
  auto compact = std::make_shared<bool>(false);
  verb->add_flag("--compact", *compact,
                 "put all rows in the order of the files: what a run from the beginning makes");
  verb->footer(
      "A file is the same when its path, size and time of change are. Rows of such files stay as "
      "they\n"
      "are, those of new files come behind them. Where files are gone or have changed, and with\n"
      "--compact, everything is put in the order of the files again. Without an output it is\n"
      "`melflow run`.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=clips.h5 melflow run dataset_builder\n"
      "  cp new/*.wav clips/train/dog; DATA=clips OUT=clips.h5 melflow update dataset_builder");
  verb->callback([arguments, compact, &action] {
    action = [arguments, compact] {
      arguments->update = *compact ? Update::compact : Update::append;
      return run_and_always_report(*arguments);
    };
  });
}

void add_run(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("run", "Runs a pipeline.");
  auto arguments = std::make_shared<RunArguments>();
  add_arguments(*verb, *arguments);
  verb->footer(
      "Example:\n"
      "  DATA=clips OUT=features.h5 melflow run speech_16k_80mel\n"
      "  melflow run mine.yaml --var DATA=clips --set mel.n_mels=64 --json > report.json");
  verb->callback(
      [arguments, &action] { action = [arguments] { return run_and_always_report(*arguments); }; });
}

}  // namespace melflow
