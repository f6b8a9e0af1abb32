// melflow status: shows the progress of a job.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/checked_json.h"
#include "apps/job/claims.h"
#include "apps/job/job.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

struct JobProgress {
  std::size_t done = 0;                     ///< parts
  std::size_t files = 0, failed_files = 0;  ///< in the parts that are done
  std::int64_t rows = 0;                    ///< in the parts that are done
  std::vector<std::pair<std::size_t, std::string>>
      failed;                        ///< parts whose last try failed, and why
  std::vector<std::string> damaged;  ///< errors in records of parts
  struct Running {
    std::size_t part = 0;
    std::string worker;
    std::size_t files = 0, of_files = 0;
    bool is_gone = false;  ///< whether it is known to have ended
  };
  std::vector<Running> running;
  std::optional<double> seconds_left;  ///< known where parts are done and workers compute others
};

JobProgress progress_of(const Job& job) {
  JobProgress out;
  std::uint64_t left = 0, made = 0;  // bytes of recordings
  double seconds = 0;
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    std::optional<PartRecord> record;
    try {
      record = PartRecord::read(job, i);
    } catch (const RunError& e) {
      out.damaged.emplace_back(e.what());
    }
    if (record) {
      ++out.done;
      out.files += job.parts[i].end - job.parts[i].first;
      out.failed_files += record->failed;
      out.rows += record->rows;
      seconds += record->seconds;
      made += job.parts[i].audio_bytes;
      continue;
    }
    left += job.parts[i].audio_bytes;
    if (const auto claim = Claims::read(job, i)) {
      const auto seen = WorkerSign::look(job, claim->worker);
      JobProgress::Running running{.part = i, .worker = claim->worker};
      running.of_files = job.parts[i].end - job.parts[i].first;
      running.is_gone = seen && seen->is_gone;
      if (seen && seen->at && seen->at->part == i) running.files = seen->at->files;
      out.running.push_back(std::move(running));
      continue;
    }
    try {
      if (const auto json = read_checked(job.failed_path(i)))
        out.failed.emplace_back(i, json->value("error", ""));
    } catch (const RunError& e) {
      out.damaged.emplace_back(e.what());
    }
  }
  const auto at_work = std::count_if(out.running.begin(), out.running.end(),
                                     [](const auto& running) { return !running.is_gone; });
  if (made > 0 && at_work > 0)
    out.seconds_left = seconds * static_cast<double>(left) / static_cast<double>(made) /
                       static_cast<double>(at_work);
  return out;
}

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
                       count_text(running.files), count_text(running.of_files),
                       one_line(running.worker),
                       running.is_gone ? ", which has ended: the next worker goes on with it" : "");
  for (const auto& [part, why] : progress.failed)
    out += fmt::format("  part {} failed: {}\n", job.name(part), one_line(why));
  for (const std::string& damaged : progress.damaged) out += "  " + one_line(damaged) + "\n";
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
