// The files that a run reads beside the items of its source: the configuration, lists, statistics.
// Stages add theirs in start(), so that a sink refuses to write over one of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/run_context.h"

namespace melflow {

struct FilesRead {
  std::vector<std::string> paths;  ///< from the stages that have started
};

inline void note_file_read(RunContext& run, std::string path) {
  run.services.find_or_make<FilesRead>()->paths.push_back(std::move(path));
}
/// Returns all these files, the configuration first.
inline std::vector<std::string> files_read(const RunContext& run) {
  std::vector<std::string> out;
  if (!run.settings.file.empty()) out.push_back(run.settings.file);
  if (const auto noted = run.services.find<FilesRead>())
    out.insert(out.end(), noted->paths.begin(), noted->paths.end());
  return out;
}

}  // namespace melflow
