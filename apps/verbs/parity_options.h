// The mel options that `verify-parity --reference` compares: those of a preset, changed by --set,
// or those of a mel node of a pipeline.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/verbs/plan_arguments.h"
#include "pipeline/base/value.h"

namespace melflow {

/// A Python library that can be asked, and the presets that it defines, the default one first.
struct ParityLibrary {
  std::string name;
  std::vector<std::string> presets;
  bool is_double;  ///< whether its transform is in double precision
};
const std::vector<ParityLibrary>& parity_libraries();

/// The comparison that the arguments ask for.
struct ParityQuestion {
  std::string library;  ///< "": the library of the pipeline's preset
  std::vector<std::string> presets;
  std::string pipeline, node;  ///< "": no pipeline; its only mel node
  PlanOverrides overrides;
};

/// Returns all options of a mel stage that has these, with derived defaults. `where`: before the
/// names of options in messages. Throws ConfigError.
nlohmann::ordered_json mel_settings(const Value& options, const std::string& where);

/// Returns {"reference": the library, "preset", "settings": mel_settings(), "changed": names of
/// options that differ from the preset, "remark"}, and of a pipeline "pipeline" and "node". Throws
/// ConfigError for a wrong option or pipeline, RunError where it is not clear which node or library
/// is meant, UsageError where the library lacks the preset or the pipeline the node.
nlohmann::ordered_json parity_options(const ParityQuestion& question);

}  // namespace melflow
