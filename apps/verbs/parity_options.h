// Which options of mel `verify-parity --reference` compares: those of a preset with what --set
// changes, or those of a mel node of a pipeline.
#pragma once

#include <string>
#include <vector>

#include "apps/parity/reference.h"
#include "apps/verbs/plan_arguments.h"
#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/mel_presets.h"

namespace melflow {

/// What is asked for, by the arguments.
struct ParityQuestion {
  std::string library;  ///< "": that of the pipeline's preset
  std::vector<std::string> presets;
  std::string pipeline, node;  ///< "": none; that there is
  PlanOverrides overrides;
};

struct ParityOptions {
  std::string library;
  const MelPreset* preset = nullptr;
  MelOptions mel;
  std::vector<std::string> changed;  ///< names of options that are not as in the preset
  std::string node;                  ///< of the pipeline
  std::string remark;
};

/// Throws ConfigError for a wrong option or pipeline, RunError where library and preset do not go
/// together or it is not clear which node is meant.
ParityOptions parity_options(const ParityQuestion& question);

}  // namespace melflow
