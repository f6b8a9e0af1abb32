// melflow plan: a corpus as a job that any number of machines can work on.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/planning.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/usage_errors.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/options/schema.h"

namespace melflow {
namespace {

struct JobArguments {
  PlanArguments plan;
  std::string folder;
  std::string part = "1GiB";
};

int plan(const JobArguments& arguments) {
  Bytes part;
  const std::string why = OptionType<Bytes>::parse(Value::scalar(arguments.part), part);
  if (!why.empty() || part.count == 0)
    throw UsageError("--part: " +
                     (why.empty() ? "a part has at least a byte; write a size such as 1GiB" : why));
  LoadOptions options = arguments.plan.overrides.load_options();
  options.workers = arguments.plan.workers;
  const Job job =
      plan_job(find_pipeline(arguments.plan.file), options, arguments.folder, part.count,
               [](const std::string& warning) { say(stderr, "warning: {}\n", warning); });
  say(stdout,
      "{}: {}, {}, in {}; `melflow work {}` makes them, on any machine that has this folder\n",
      job.folder, plural(job.files(), "file"), bytes_text(static_cast<double>(job.audio_bytes())),
      plural(job.parts.size(), "part"), job.folder);
  return kDone;
}

}  // namespace

Action add_plan(CLI::App& verb) {
  auto arguments = std::make_shared<JobArguments>();
  arguments->plan.add_to(verb);
  verb.add_option("--part", arguments->part, "approximate size of a part, in bytes of recordings")
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("-o,--output", arguments->folder, "the folder of the job; it is created")
      ->type_name("JOB")
      ->required();
  verb.footer(
      "The corpus is listed once; every later step goes by that. docs/clusters.md has whole "
      "commands for\n"
      "several machines, Slurm and Kubernetes.\n"
      "\n"
      "Example:\n"
      "  melflow plan speech_16k_80mel --var DATA=clips --var OUT=features.h5 --part 4GiB -o job\n"
      "  melflow work job     # once on each machine\n"
      "  melflow merge job");
  return [arguments] { return plan(*arguments); };
}

}  // namespace melflow
