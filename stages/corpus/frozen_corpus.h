// A corpus that is listed once for several runs: a dry run (survey) lists it, and the runs use that
// list.
#pragma once

#include <string>
#include <vector>

#include "stages/manifest.h"

namespace melflow {

/// Filled in by a run that lists a corpus (RunTask::survey).
struct CorpusSurvey {
  bool is_listed = false;            ///< whether the source can take its list as a FrozenCorpus
  std::vector<std::string> remarks;  ///< the source's remarks on the corpus as a whole
};

/// The corpus of a run whose source lists nothing (RunTask::corpus). A file with a different stamp
/// ends the run. Audio is not stored for later runs.
struct FrozenCorpus {
  Manifest manifest;  ///< is moved from
  std::vector<FileStamp> stamps;
  std::vector<std::string> remarks;  ///< to be reported as remarks of this run
};

}  // namespace melflow
