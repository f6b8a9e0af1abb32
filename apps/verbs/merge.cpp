// melflow merge: makes a job's output from its parts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/job.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/remarks_text.h"
#include "apps/report/report_json.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/dry_run.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watched_run.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/plan/plan.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/output/merge_planner.h"
#include "stages/output/row_sink.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

const RowSink& sink_of(const Plan& plan) {
  for (const PlanNode& node : plan.nodes)
    if (const auto* sink = dynamic_cast<const RowSink*>(node.stage.get())) return *sink;
  throw std::logic_error("a job without an output of rows");
}

// The output says by what its rows were computed, and takes that from the run that writes it.
void check_instruction_set(const Job& job, const RowSink& sink) {
  const auto set_in = [](const RunJournal::Facts& facts) {
    const auto at =
        std::ranges::find(facts, "instruction set", &RunJournal::Facts::value_type::first);
    return at == facts.end() ? std::string() : at->second;
  };
  const std::string was = set_in(job.row_facts), is = set_in(sink.row_facts());
  if (was != is)
    throw RunError(fmt::format(
        "{}: its parts were made with instruction set {}, and this is {}, which the output would "
        "name; merge with the program and a processor as where the plan was made",
        job.folder, was, is));
}

// Returns "3, 7 to 9".
std::string parts_text(const Job& job, const std::vector<std::size_t>& parts) {
  constexpr std::size_t kShown = 12;
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t last = i;
    while (last + 1 < parts.size() && parts[last + 1] == parts[last] + 1) ++last;
    if (++shown > kShown) return out + " and more";
    out += (out.empty() ? "" : ", ") + job.name(parts[i]);
    if (last > i) out += (last > i + 1 ? " to " : ", ") + job.name(parts[last]);
    i = last + 1;
  }
  return out;
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

// Throws RunError for an output file outside of the folders that the user named: `here`, which was
// the current folder, and the job's. (The program has changed to the job's working folder.)
void check_place(const Job& job, const std::string& file, const std::filesystem::path& here) {
  namespace fs = std::filesystem;
  const fs::path place = fs::weakly_canonical(fs::absolute(file));
  if (is_below(place, here) || is_below(place, fs::weakly_canonical(job.folder))) return;
  throw RunError(fmt::format("{}: {}.path: {} {}", job.folder, job.sink,
                             excerpt(place.string(), kLongestPath), Trust::refusal(Effect::write)));
}

// Makes the plan of a run that writes the job's output from its parts, to the pipeline's path, or
// to `output` unless that is "". `job` has to exist as long as the plan. Throws RunError that names
// the parts which are not done, or a part of another plan, or another instruction set.
Plan merging_plan(const Job& job, const LoadOptions& options, const std::string& output,
                  const std::filesystem::path& here) {
  Plan plan = job.load(options, output);
  std::vector<FinishedPart> parts;
  std::vector<std::size_t> missing;
  const RowSink& sink = sink_of(plan);
  check_instruction_set(job, sink);
  const int columns = sink.info().columns;
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    const auto record = PartRecord::read(job, i);
    if (!record) {
      missing.push_back(i);
      continue;
    }
    FinishedPart part{job.part_path(i), job.parts[i].first, job.parts[i].end,
                      record->bytes,    record->hash,       std::nullopt};
    if (record->sums) {
      part.sums = ColumnSums::of(*record->sums, columns);
      if (!part.sums)
        throw RunError(job.done_path(i) +
                       ": has no sums of the output's columns; remove it, and "
                       "`melflow work` makes the part again");
    }
    parts.push_back(std::move(part));
  }
  if (!missing.empty())
    throw RunError(fmt::format(
        "of {} parts {} {} not done: {}; `melflow status {}` says why, and `melflow work {}` makes "
        "what can be made",
        job.parts.size(), missing.size(), missing.size() == 1 ? "is" : "are",
        parts_text(job, missing), job.folder, job.folder));
  const std::vector<ManifestRange> ranges(job.parts.begin(), job.parts.end());
  auto corpus = std::make_shared<FrozenCorpus>(read_manifest(job.in(kJobManifest), ranges));
  corpus->remarks = job.remarks;
  const auto task =
      set_task(plan.services, {.corpus = std::move(corpus), .planner = [parts = std::move(parts)] {
                                 return std::make_unique<MergePlanner>(parts);
                               }});
  if (output.empty() && !options.trust.allows(Effect::write))
    task->check_place = [&job, here](const std::string& file) { check_place(job, file, here); };
  return plan;
}

struct MergeArguments {
  std::string folder, output;
  std::optional<int> workers;
  StoredOverrides stored;
  bool quiet = false, json = false, dry_run = false;
};

std::string summary_of(const RunReport& report, const Job& job) {
  std::string path, rows;
  for (const StageReport& stage : report.stages)
    for (const auto& [name, value] : stage.summary) {
      if (name == "path") path = value.text();
      if (name == "rows") rows = count_text(std::stoull(value.text()));
    }
  std::string out =
      fmt::format("{}: {} rows of {}", path, rows, plural(report.counts.found, "file"));
  if (report.counts.failed > 0) out += fmt::format(", {} failed", report.counts.failed);
  if (report.counts.skipped > 0) out += fmt::format(", {} skipped", report.counts.skipped);
  if (report.counts.warned > 0) out += fmt::format(", {} ok with a warning", report.counts.warned);
  return out + fmt::format("; of {}, in {}\n", plural(job.parts.size(), "part"),
                           seconds_text(report.wall_seconds));
}

int merge_parts_of(const MergeArguments& arguments) {
  const Job job = Job::read(arguments.folder);
  const std::string output =
      arguments.output.empty() ? "" : std::filesystem::absolute(arguments.output).string();
  const std::filesystem::path here = std::filesystem::canonical(".");
  job.enter_working_folder();
  Plan plan = merging_plan(job, arguments.stored.load_options(arguments.workers), output, here);
  if (arguments.dry_run) {
    const DryRun dry = dry_run(std::move(plan), kQuietly);
    if (arguments.json)
      put(stdout, json_text(plan_json(dry.plans, dry.source(), dry.report, dry.exit_code())));
    return dry.print(arguments.json ? nullptr : stdout);
  }
  Runner runner(std::move(plan));
  const QuietRun ran = run_quietly(runner, "stopped before the end; the same command begins again");
  if (ran.failure) return *ran.failure;
  const RunReport& report = ran.report;
  const Remarks remarks = runner.remarks();
  const int code = report.counts.failed > 0 ? kSomeFailed : kDone;
  if (arguments.json)
    put(stdout, json_text(report_json(report, runner.plan(), remarks, code)));
  else if (!arguments.quiet)
    put(stdout, summary_of(report, job));
  else
    put(stderr, failures_text(report, remarks, kShownRemarks) + warned_text(report, remarks));
  return code;
}

}  // namespace

Action add_merge(CLI::App& verb) {
  auto arguments = std::make_shared<MergeArguments>();
  verb.add_option("JOB", arguments->folder, "the folder of a job whose parts are done")->required();
  verb.add_option("-o,--output", arguments->output,
                  "writes there; not given: to the path in the pipeline, where that is below the "
                  "current folder or the job's")
      ->type_name("FILE");
  add_workers(verb, arguments->workers, "threads; 0: as many as there are cores");
  arguments->stored.add_to(verb);
  verb.add_flag("--json", arguments->json, "prints a JSON document instead, as `melflow run` does");
  verb.add_flag("-q,--quiet", arguments->quiet,
                "prints only what failed and how many files are ok with a warning");
  verb.add_flag("--dry-run", arguments->dry_run,
                "shows whether the output can be made from the parts; changes nothing");
  verb.footer(
      "Every part is compared with what its worker wrote. The output is byte for byte that of "
      "`melflow run`.\n"
      "Exit status: 0 done, 3 done but some files failed, 1 a part is missing or damaged, 75 "
      "stopped.\n"
      "\n"
      "Example:\n"
      "  melflow merge job -o features.h5");
  return [arguments] { return merge_parts_of(*arguments); };
}

}  // namespace melflow
