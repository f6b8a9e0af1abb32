// melflow status: the progress of a job.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/progress.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/verbs.h"

namespace melflow {
namespace {

struct StatusArguments {
  std::string folder;
  bool json = false;
};

std::string text_of(const Job& job, const JobProgress& progress) {
  std::string out =
      fmt::format("{}: {} of {} done, with {} files and {} rows\n", job.folder,
                  count_text(progress.done), plural(job.parts.size(), "part"),
                  count_text(progress.files), count_text(static_cast<std::size_t>(progress.rows)));
  if (progress.failed_files > 0)
    out += fmt::format("  {} failed in them (`melflow inspect PART` says which)\n",
                       plural(progress.failed_files, "file"));
  for (const JobProgress::Running& running : progress.running)
    out += fmt::format("  part {}: {} of {} files, by {}{}\n", job.name(running.part),
                       count_text(running.files), count_text(running.of_files), running.worker,
                       running.is_gone ? ", which has ended: the next worker goes on with it" : "");
  for (const auto& [part, why] : progress.failed)
    out += fmt::format("  part {} failed: {}\n", job.name(part), why);
  for (const std::string& damaged : progress.damaged) out += "  " + damaged + "\n";
  if (progress.seconds_left)
    out += fmt::format("  about {} to go\n", seconds_text(*progress.seconds_left));
  return out;
}

nlohmann::ordered_json json_of(const Job& job, const JobProgress& progress) {
  nlohmann::ordered_json out{{"job", job.folder},
                             {"plan", job.id},
                             {"parts", job.parts.size()},
                             {"done", progress.done},
                             {"files", progress.files},
                             {"failed_files", progress.failed_files},
                             {"rows", progress.rows},
                             {"running", nlohmann::ordered_json::array()},
                             {"failed", nlohmann::ordered_json::array()},
                             {"damaged", progress.damaged},
                             {"seconds_left", nullptr}};
  for (const JobProgress::Running& r : progress.running)
    out["running"].push_back({{"part", r.part},
                              {"worker", r.worker},
                              {"files", r.files},
                              {"of_files", r.of_files},
                              {"gone", r.is_gone}});
  for (const auto& [part, why] : progress.failed)
    out["failed"].push_back({{"part", part}, {"error", why}});
  if (progress.seconds_left) out["seconds_left"] = *progress.seconds_left;
  return out;
}

int status(const StatusArguments& arguments) {
  const Job job = Job::read(arguments.folder);
  const JobProgress progress = progress_of(job);
  put(stdout, arguments.json ? json_text(json_of(job, progress)) : text_of(job, progress));
  return kDone;
}

}  // namespace

Action add_status(CLI::App& verb) {
  auto arguments = std::make_shared<StatusArguments>();
  verb.add_option("JOB", arguments->folder, "the folder of a job")->required();
  verb.add_flag("--json", arguments->json, "prints a JSON document instead");
  verb.footer(
      "The time left is estimated from the finished parts and the active workers.\n"
      "\n"
      "Example:\n"
      "  melflow status job");
  return [arguments] { return status(*arguments); };
}

}  // namespace melflow
