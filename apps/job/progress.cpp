#include "apps/job/progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/job/checked_json.h"
#include "apps/job/claims.h"
#include "apps/job/part_record.h"
#include "pipeline/base/problem.h"

namespace melflow {

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

}  // namespace melflow
