// The mel options that `verify-parity --reference` compares: those of a preset, changed by --set,
// or those of a mel node of a pipeline.
#pragma once

#include <string>
#include <vector>

#include "apps/parity/reference.h"
#include "apps/verbs/plan_arguments.h"
#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/mel_presets.h"

namespace melflow {

/// The comparison that the arguments ask for.
struct ParityQuestion {
  std::string library;  ///< "": the library of the pipeline's preset
  std::vector<std::string> presets;
  std::string pipeline, node;  ///< "": no pipeline; its only mel node
  PlanOverrides overrides;
};

struct ParityOptions {
  std::string library;
  const MelPreset* preset = nullptr;
  MelOptions mel;
  std::vector<std::string> changed;  ///< names of options that differ from the preset
  std::string node;                  ///< the pipeline's node
  std::string remark;
};

/// Throws ConfigError for a wrong option or pipeline, RunError where the library lacks the preset
/// or it is not clear which node is meant.
ParityOptions parity_options(const ParityQuestion& question);

}  // namespace melflow
