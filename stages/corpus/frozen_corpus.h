// A corpus that is listed once for several runs: a dry run (survey) lists it, and the runs take
// what was listed.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "stages/manifest.h"

namespace melflow {

/// Where the caller adds one to the services of a run, its source lists the corpus, its sink closes
/// every file as not run, and nothing is read or written.
struct CorpusSurvey {
  // Filled in.
  bool is_listed = false;            ///< the source can take a FrozenCorpus of what it lists
  std::vector<std::string> remarks;  ///< of the source on the corpus as a whole
};
inline bool is_survey(const RunContext& run) {
  return run.services.find<CorpusSurvey>() != nullptr;
}

/// Where the caller adds one to the services of a run, its source takes this and lists nothing. A
/// file with another stamp than here ends the run. Audio is not stored for later runs.
struct FrozenCorpus {
  Manifest manifest;  ///< is moved from
  std::vector<FileStamp> stamps;
  std::vector<std::string> remarks;  ///< to be passed on as those of this run
};
inline bool is_frozen(const RunContext& run) {
  return run.services.find<FrozenCorpus>() != nullptr;
}

}  // namespace melflow
