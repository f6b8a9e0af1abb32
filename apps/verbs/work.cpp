// melflow work: makes parts of a job until none is left.
#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/working.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/duration.h"
#include "apps/verbs/verbs.h"

namespace melflow {
namespace {

struct WorkArguments {
  std::string folder;
  WorkOptions options;
};

int work(const WorkArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  const Job job = Job::read(arguments.folder);
  job.enter_working_folder();
  const Worked worked = work_on(job, arguments.options);
  if (!arguments.options.quiet)
    say(stdout, "{}: {} made by this worker\n", job.folder, plural(worked.made, "part"));
  if (worked.failed > 0) {
    complain(fmt::format("{} failed; fix what is said above, and `melflow work {}` tries again",
                         plural(worked.failed, "part"), job.folder));
    return kRunFailed;
  }
  if (!worked.is_stopped) return kDone;
  complain("stopped before the end; the same command goes on from there");
  return kStopped;
}

}  // namespace

Action add_work(CLI::App& verb) {
  auto arguments = std::make_shared<WorkArguments>();
  verb.add_option("JOB", arguments->folder, "the folder of a job")->required();
  verb.add_option("--workers", arguments->options.workers,
                  "threads that compute; 0: as many as there are cores")
      ->type_name("N")
      ->check(is_integer(0, 1024));
  add_time(verb, "--stop-after", arguments->options.stop_after,
           "starts no new files after this time (90s, 30m, 11h50m), and then ends as after Ctrl-C; "
           "for machines with a time limit");
  add_time(verb, "--patience", arguments->options.patience,
           "how long another worker may show no heartbeat before its part is started again "
           "(default 60s)");
  verb.add_flag("-q,--quiet", arguments->options.quiet, "prints only what failed");
  verb.footer(
      "Takes parts that nobody is working on until all are done, and waits for other workers "
      "meanwhile. A worker\nthat is killed loses only the part that it was working on. Ctrl-C, "
      "SIGTERM and --stop-after leave what is done for whoever comes next.\n"
      "Exit status: 0 all parts are done, 1 some failed, 75 stopped.\n"
      "\n"
      "Example:\n"
      "  melflow work job --stop-after 11h50m");
  return [arguments] { return work(*arguments); };
}

}  // namespace melflow
