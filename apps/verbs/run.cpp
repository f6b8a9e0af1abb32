// melflow run and update: the plan, the run with its progress, and the final messages.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/check/findings.h"
#include "apps/exit_codes.h"
#include "apps/report/explain.h"
#include "apps/report/format.h"
#include "apps/report/html_report.h"
#include "apps/report/printing.h"
#include "apps/report/remarks_text.h"
#include "apps/report/report_json.h"
#include "apps/report/report_text.h"
#include "apps/report/trace_json.h"
#include "apps/report/verdicts_text.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/dry_run.h"
#include "apps/verbs/metrics_file.h"
#include "apps/verbs/output_corpus.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watch.h"
#include "apps/verbs/watched_run.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/shell_word.h"
#include "pipeline/base/text.h"
#include "pipeline/run/runner.h"
#include "stages/device/timeline_observer.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

struct RunArguments {
  PlanArguments plan;
  std::string json;  ///< "": none, "-": stdout, else a file
  std::string page;  ///< a file for the report as HTML; "": none
  std::string trace;
  std::size_t trace_calls = VisitLog::kMost;
  std::string metrics;       ///< a file for the node exporter; "": none
  double metrics_every = 5;  ///< [s]
  bool quiet = false, verbose = false;
  bool no_progress = false;
  double progress_every = ProgressDisplay::kLineEvery;  ///< [s]
  Update update = Update::none;
  Resume::When resume = Resume::When::automatic;
  double stop_after = 0;  ///< [s]; 0: never
  bool dry_run = false;   ///< only for an update
  double watch = 0;       ///< only for an update: how long a new file must not change [s]; 0: once
  // While watching:
  std::shared_ptr<WholeFiles> whole = {};
  std::atomic<bool>* interrupted = nullptr;
};

// The JSON document, the page, the trace and the metrics; whether they can be written is checked
// before the run.
class Documents {
 public:
  explicit Documents(const RunArguments& arguments) : json_(arguments.json) {
    const std::filesystem::path ending = std::filesystem::path(arguments.page).extension();
    if (!ending.empty() && ending != ".html" && ending != ".htm")
      throw UsageError(
          fmt::format("--report: {} does not end in .html; the report is a page for a browser, so "
                      "name it .html",
                      excerpt(arguments.page)));
    if (json_ != "-") open(json_file_, "--json", json_, "\"exit_code\"", arguments);
    open(page_, "--report", arguments.page, "<title>melflow", arguments);
    open(trace_, "--trace", arguments.trace, "\"displayTimeUnit\"", arguments);
    if (!arguments.metrics.empty())
      named("--metrics",
            [&] { metrics_.emplace(arguments.metrics, std::vector{arguments.plan.file}); });
  }
  /// Throws RunError where one of them would replace an output of the run.
  void keep_off_outputs(const Plan& plan) {
    const std::vector<std::string> outputs = files_made(plan);
    for (const auto& [file, option] :
         {std::pair(&json_file_, "--json"), std::pair(&page_, "--report"),
          std::pair(&trace_, "--trace")})
      named(option, [&, f = file] {
        if (*f) (*f)->keep_off(outputs);
      });
    named("--metrics", [&] {
      if (metrics_) metrics_->keep_off(outputs);
    });
  }
  [[nodiscard]] bool are_wanted() const { return !json_.empty() || page_; }
  /// Writes the report of a run that started.
  void write(const nlohmann::ordered_json& document) {
    if (page_) page_->write(html_report(document));
    write_json(document);
  }
  [[nodiscard]] bool has_trace() const { return trace_.has_value(); }
  void write_trace(const std::string& text) { trace_->write(text); }
  [[nodiscard]] MetricsFile* metrics() { return metrics_ ? &*metrics_ : nullptr; }
  /// Writes that and why a run did not start.
  void write_not_started(const nlohmann::ordered_json& document) {
    if (metrics_) metrics_->write_not_started();
    write_json(document);
  }
  void write_json(const nlohmann::ordered_json& document) {
    if (json_file_) return json_file_->write(json_text(document));
    if (json_.empty()) return;
    put(stdout, json_text(document));
    if (std::ferror(standard_output()) != 0)
      throw RunError("stdout: cannot write the JSON report there");
  }

 private:
  static void named(const char* option, const std::function<void()>& what) {
    try {
      what();
    } catch (const RunError& e) {
      throw RunError(fmt::format("{}: {}", option, e.what()));
    }
  }
  static void open(std::optional<WrittenFile>& file, const char* option, const std::string& path,
                   const char* mark, const RunArguments& arguments) {
    if (!path.empty())
      named(option, [&] { file.emplace(path, mark, std::vector{arguments.plan.file}); });
  }

  std::string json_;
  std::optional<WrittenFile> json_file_, page_, trace_;
  std::optional<MetricsFile> metrics_;
};

std::vector<Verdict> verdicts_on(const RunReport& report, const Plan& plan) {
  const auto expected = plan.services.find<Expectations>();
  if (!expected) return {};
  std::vector<Verdict> out = verdicts(*expected, report, rows_of_run(report, plan));
  if (report.ending == Ending::complete)
    for (Verdict& v : verdicts_on_recordings(plan)) out.push_back(std::move(v));
  if (!expected->figures.list.empty())
    for (Verdict& v : verdicts_on_figures(expected->figures, report_json(report, plan, {}, 0)))
      out.push_back(std::move(v));
  return out;
}

std::vector<Verdict> unmet(std::vector<Verdict> judged) {
  std::erase_if(judged, [](const Verdict& v) { return v.is_met; });
  return judged;
}

int exit_code_of(const RunReport& report, const std::vector<Verdict>& judged, bool watches) {
  // If no file is ok, nothing is written; a watch waits for further files.
  if (watches && report.ending == Ending::failed && report.counts.ok == 0 &&
      report.counts.failed + report.counts.skipped == report.counts.found)
    return kSomeFailed;
  if (report.ending == Ending::complete && !unmet(judged).empty()) return kNotAsExpected;
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

Watch watch_of(const RunArguments& arguments) {
  Watch watch{
      .every = arguments.progress_every,
      .quiet = arguments.quiet,
      .seconds = arguments.stop_after,
      .with_series = !arguments.json.empty() || !arguments.page.empty() || !arguments.trace.empty(),
      .metrics_every = arguments.metrics_every,
      .interrupted = arguments.interrupted};
  if (arguments.quiet || arguments.no_progress) watch.progress = ProgressDisplay::Mode::none;
  return watch;
}

void print_report(const RunReport& report, const Runner& runner, const Remarks& remarks,
                  const std::vector<Verdict>& judged, bool verbose, std::FILE* out) {
  std::string listed;
  if (!remarks.empty())
    listed = "\nfailed, ok with a warning, or skipped:\n" +
             remarks_text(report, remarks, verbose ? remarks.size() : kShownRemarks);
  const std::string tables =
      "\n" + tables_text(report, verbose) + warnings_text(report, runner.plan());
  std::string text = accounts_text(report, runner.plan());
  text += report.counts.ok == 0 ? listed + tables : tables + listed;
  if (!judged.empty()) text += "\n" + verdicts_text(judged);
  put(out, text);
}

// Returns FILE with its arguments, as on the command line, but without values that the stored
// configuration `stored` omits as secrets.
std::string given_text(const PlanArguments& plan, const Value& stored) {
  std::string out = shell_word(plan.file);
  const std::string known = to_json(stored);
  const auto add = [&](const char* option, const std::string& text, bool may_be_secret) {
    const std::size_t value = text.find('=') + 1;
    const bool is_shown = !may_be_secret || known.find(text.substr(value)) != known.npos;
    out +=
        fmt::format(" {} {}", option, shell_word(is_shown ? text : text.substr(0, value) + "..."));
  };
  for (const std::string& s : plan.overrides.sets)
    add("--set", s, s.substr(0, s.find('=')).find(".arguments") != s.npos);
  for (const std::string& v : plan.overrides.vars) add("--var", v, true);
  return excerpt(out, 4096);
}

// Advises what to do about failed files of a run that has an output.
std::string what_to_do_text(const RunReport& report, const Plan& plan,
                            const PlanArguments& arguments) {
  if (report.ending != Ending::complete || report.counts.failed == 0) return {};
  const Value& config = plan.settings.config;
  if (why_no_update(plan).empty())
    return fmt::format(
        "  Fix or exclude these files; `melflow update {}` then computes what has changed.\n",
        given_text(arguments, config));
  const bool writes = std::any_of(plan.nodes.begin(), plan.nodes.end(), [&](const PlanNode& n) {
    const Value *graph = config.find("graph"), *node = graph ? graph->find(n.name) : nullptr;
    return node != nullptr && node->find("overwrite") != nullptr;
  });
  return fmt::format("  Fix or exclude these files, and run it again{}.\n",
                     writes ? ", with overwrite: true" : "");
}

int preview(const RunArguments& arguments, Plan plan, Documents& documents) {
  const DryRun dry = dry_run(std::move(plan), watch_of(arguments));
  documents.write_json(plan_json(dry.plans, dry.source(), dry.report, dry.exit_code()));
  return dry.print(arguments.quiet ? nullptr : arguments.json == "-" ? stderr : stdout);
}

int run(const RunArguments& arguments, Documents& documents) {
  Plan plan = arguments.plan.load();
  documents.keep_off_outputs(plan);
  set_task(plan.services, {.whole = arguments.whole,
                           .update = arguments.update,
                           .resume = {arguments.resume,
                                      [](const std::string& text) { say(stderr, "{}\n", text); }}});
  for (const Problem& w : plan.warnings) say(stderr, "warning: {}\n", w.str());
  if (arguments.dry_run) return preview(arguments, std::move(plan), documents);
  if (arguments.verbose) put(stderr, explain_text(plan, Explained::every_option));
  const auto observer = timeline_observer(plan);
  std::optional<VisitLog> visits;
  if (documents.has_trace() || documents.are_wanted())
    visits.emplace(documents.has_trace() ? arguments.trace_calls : 0);
  Runner runner(std::move(plan), observer.get(), visits ? &*visits : nullptr);
  Watch watch = watch_of(arguments);
  watch.metrics = documents.metrics();
  WatchedRun ran = run_watched(runner, watch);
  if (documents.has_trace() && visits->left_out() > 0)
    ran.report.warnings.push_back(left_out_text(*visits));
  const RunReport& report = ran.report;
  const Remarks remarks = runner.remarks();
  const std::vector<Verdict> judged = verdicts_on(report, runner.plan());
  const int code = exit_code_of(report, judged, arguments.whole != nullptr);
  if (!arguments.quiet)
    print_report(report, runner, remarks, judged, arguments.verbose,
                 arguments.json == "-" ? stderr : stdout);
  else
    put(stderr,
        warnings_text(report, runner.plan()) + failures_text(report, remarks, kShownRemarks) +
            warned_text(report, remarks) + skipped_text(report, remarks) +
            what_to_do_text(report, runner.plan(), arguments.plan) + verdicts_text(unmet(judged)));
  if (documents.has_trace())
    documents.write_trace(trace_json(*visits, ran.series, report, runner.plan()));
  if (documents.are_wanted()) {
    auto document = report_json(report, runner.plan(), remarks, code, judged);
    document["series"] = series_json(ran.series);
    document["series"]["workers"] = workers_json(worker_times(*visits, report), report);
    documents.write(document);
  }
  if (report.ending == Ending::failed) complain(report.error);
  if (report.ending == Ending::stopped)
    complain(fmt::format(
        "stopped before the end, {} not run; {}the same command goes on from there",
        plural(report.counts.not_run, "file"),
        arguments.update == Update::none ? ""
                                         : "the output is what it was before the update, and "));
  return code;
}

int run_and_always_report(const RunArguments& arguments) {
  Documents documents(arguments);
  try {
    return run(arguments, documents);
  } catch (const ConfigError& e) {
    documents.write_not_started(not_started_json(e, kConfiguration));
    throw;
  } catch (const RunError& e) {
    documents.write_not_started(not_started_json(std::string(e.what()), kRunFailed));
    throw;
  }
}

void add_arguments(CLI::App& verb, RunArguments& arguments) {
  arguments.plan.add_to(verb);
  verb.add_option_function<std::string>(
          "--resume",
          [&arguments](const std::string& when) {
            arguments.resume = when == "never"     ? Resume::When::never
                               : when == "require" ? Resume::When::required
                                                   : Resume::When::automatic;
          },
          "whether to resume where an earlier run stopped; auto: if there is something to "
          "resume; never: starts over; require: fails if there is nothing to resume")
      ->check(is_one_of({"auto", "never", "require"}))
      ->type_name("auto|never|require")
      ->default_str("auto");
  // A flag, so that a FILE needs '=' and a bare --json may precede the pipeline.
  verb.add_flag(
      "--json{-}", arguments.json,
      "prints one JSON document on stdout and everything else on stderr; --json=FILE writes the "
      "document to FILE, for `melflow report`, and leaves the summary on stdout");
  add_time(verb, "--stop-after", arguments.stop_after,
           "starts no new files after this time (90s, 30m, 11h50m), and then ends as after Ctrl-C; "
           "for machines with a time limit");
  verb.add_option("--report", arguments.page,
                  "writes the report of this run as a page for a browser: the graph with what is "
                  "busy and what holds it up; rates, queues, memory and cores over time; the files "
                  "that took longest (`melflow report` compares two runs by their --json)")
      ->type_name("FILE.html");
  CLI::Option* trace =
      verb.add_option("--trace", arguments.trace,
                      "writes what each worker did and when, for ui.perfetto.dev: a span for every "
                      "call of a stage, arrows that follow the files, queues, memory")
          ->type_name("FILE.json");
  verb.add_option(
          "--trace-calls", arguments.trace_calls,
          "the trace keeps the first N calls of stages; each takes about 80 bytes of memory "
          "during the run")
      ->type_name("N")
      ->check(is_integer(1, 100'000'000))
      ->capture_default_str()
      ->needs(trace);
  CLI::Option* metrics =
      verb.add_option("--metrics", arguments.metrics,
                      "writes the figures of the run for Prometheus, again and again while it "
                      "runs: a file for the textfile collector of its node exporter, replaced as "
                      "a whole")
          ->type_name("FILE.prom");
  add_time(verb, "--metrics-every", arguments.metrics_every,
           "how often these are written (default 5s)");
  verb.get_option("--metrics-every")->needs(metrics);
  CLI::Option* quiet = verb.add_flag(
      "-q,--quiet", arguments.quiet,
      "prints only warnings, the files that failed, and how many are ok with a warning "
      "or were skipped");
  verb.add_flag(
          "-v,--verbose", arguments.verbose,
          "prints what was planned of every node before the run, and after it every file that "
          "failed, was skipped or has a warning, the files that took longest and what limited "
          "the run, however short that was")
      ->excludes(quiet);
  verb.add_flag("--no-progress", arguments.no_progress, "prints no progress, only the summary");
  add_time(verb, "--progress-every", arguments.progress_every,
           "where stderr is no terminal, prints a line of progress this often (default 10s)");
}

}  // namespace

Action add_update(CLI::App& verb) {
  auto arguments = std::make_shared<RunArguments>();
  add_arguments(verb, *arguments);
  auto compact = std::make_shared<bool>(false);
  verb.add_flag("--compact", *compact,
                "puts all rows in the order of the files, as a new run would");
  verb.add_flag(
      "--dry-run", arguments->dry_run,
      "shows what would be computed (and for which split), kept and dropped, and why; changes "
      "nothing");
  add_time(verb, "--watch", arguments->watch,
           "updates again and again until a signal, whenever new or changed files are whole: when "
           "their size and times have not changed for this time (30s)");
  for (const char* document : {"--json", "--report", "--trace", "--dry-run", "--stop-after"})
    verb.get_option("--watch")->excludes(verb.get_option(document));
  verb.get_option("--dry-run")->excludes(verb.get_option("--metrics"));
  verb.footer(
      "A file is the same when its path, size and modification time are. Rows of such files stay "
      "as they\n"
      "are, those of new files come after them. Where files are gone or have changed, and with\n"
      "--compact, all rows are rewritten in the order of the files. Where there is no output\n"
      "yet, this does the same as `melflow run`.\n"
      "An update that is interrupted leaves the output as it was, and the same command goes on: "
      "new "
      "rows\n"
      "wait in PATH.new.part (all rows in PATH.part, where they are put in order), and "
      "PATH.journal\n"
      "says how far.\n"
      "Several outputs of a pipeline are updated together: each file is read once, for those that\n"
      "need it. When such an update is interrupted, the next one starts over.\n"
      "With --watch, files that are still being written wait for the next update, and a folder "
      "without files\n"
      "is no error. An update that is refused is said once, and waits until what refuses it has "
      "changed;\n"
      "one that is refused at the start, or fails as a whole, ends it; files that fail do not.\n"
      "Exit status: that of `melflow run`; with --dry-run 0 where the update can be made, else 1; "
      "with --watch\n"
      "0 after a signal between two updates.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=clips.h5 melflow run dataset_builder\n"
      "  cp new/*.wav clips/train/dog; DATA=clips OUT=clips.h5 melflow update dataset_builder");
  return [arguments, compact] {
    arguments->update = *compact ? Update::compact : Update::append;
    if (arguments->watch > 0) {
      (void)Documents(*arguments);  // an update may be long in coming
      return watch_and_update(arguments->plan, arguments->update, arguments->watch,
                              [&](const auto& whole, std::atomic<bool>& interrupted) {
                                arguments->whole = whole;
                                arguments->interrupted = &interrupted;
                                return run_and_always_report(*arguments);
                              });
    }
    return run_and_always_report(*arguments);
  };
}

Action add_run(CLI::App& verb) {
  auto arguments = std::make_shared<RunArguments>();
  add_arguments(verb, *arguments);
  verb.footer(
      "Exit status: 0 done, 3 some files failed, 4 `expect` in the pipeline is not met, 1 failed, "
      "75 stopped,\n"
      "2 usage, 78 the configuration is wrong.\n"
      "Ctrl-C lets files under way finish, then ends the run (exit status 75); a second one ends "
      "it at once (130).\n"
      "After that, as after a crash, a full disk or a kill, the same command continues where it "
      "left off: what\n"
      "is done is in PATH.part (PATH: what the sink's option path says), and PATH.journal says how "
      "far. "
      "An\n"
      "output gets its name only when it is complete.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=features.h5 melflow run speech_16k_80mel\n"
      "  melflow run mine.yaml --var DATA=clips --set mel.n_mels=64 --json > report.json");
  return [arguments] { return run_and_always_report(*arguments); };
}

}  // namespace melflow
