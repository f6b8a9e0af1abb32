// A corpus that is listed once for several runs: a dry run (survey) lists it, and the runs use that
// list.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "stages/manifest.h"

namespace melflow {

/// Where the caller adds a CorpusSurvey to the services of a run, the run's source lists the
/// corpus, its sink closes every file as not run, and nothing is read or written.
struct CorpusSurvey {
  // Filled in by the run.
  bool is_listed = false;            ///< whether the source can take its list as a FrozenCorpus
  std::vector<std::string> remarks;  ///< the source's remarks on the corpus as a whole
};
inline bool is_survey(const RunContext& run) {
  return run.services.find<CorpusSurvey>() != nullptr;
}

/// Where the caller adds a FrozenCorpus to the services of a run, the run's source uses it and
/// lists nothing. A file with a different stamp ends the run. Audio is not stored for later runs.
struct FrozenCorpus {
  Manifest manifest;  ///< is moved from
  std::vector<FileStamp> stamps;
  std::vector<std::string> remarks;  ///< to be reported as remarks of this run
};
inline bool is_frozen(const RunContext& run) {
  return run.services.find<FrozenCorpus>() != nullptr;
}

}  // namespace melflow
