// melflow merge: the output of a job, of its parts.
#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/merging.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/remarks_text.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watched_run.h"

namespace melflow {
namespace {

struct MergeArguments {
  std::string folder, output;
  std::optional<int> workers;
  bool quiet = false;
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
  std::signal(SIGPIPE, SIG_IGN);
  const Job job = Job::read(arguments.folder);
  const std::string output =
      arguments.output.empty() ? "" : std::filesystem::absolute(arguments.output).string();
  job.enter_working_folder();
  Runner runner(merging_plan(job, arguments.workers, output));
  const RunReport report =
      run_watched(runner, {.progress = ProgressDisplay::Mode::none, .quiet = true}).report;
  for (const std::string& warning : report.warnings) say(stderr, "warning: {}\n", warning);
  if (report.ending == Ending::failed) {
    complain(report.error);
    return kRunFailed;
  }
  if (report.ending == Ending::stopped) {
    complain("stopped before the end; the same command begins again");
    return kStopped;
  }
  const std::vector<Remark> remarks = runner.remarks();
  if (!arguments.quiet)
    put(stdout, summary_of(report, job));
  else
    put(stderr, failures_text(report, remarks, kShownRemarks) + warned_text(report, remarks));
  return report.counts.failed > 0 ? kSomeFailed : kDone;
}

}  // namespace

Action add_merge(CLI::App& verb) {
  auto arguments = std::make_shared<MergeArguments>();
  verb.add_option("JOB", arguments->folder, "the folder of a job whose parts are done")->required();
  verb.add_option("-o,--output", arguments->output,
                  "writes there instead of to the path in the pipeline")
      ->type_name("FILE");
  verb.add_option("--workers", arguments->workers, "threads; 0: as many as there are cores")
      ->type_name("N")
      ->check(is_integer(0, 1024));
  verb.add_flag("-q,--quiet", arguments->quiet,
                "prints only what failed and how many files are ok with a warning");
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
