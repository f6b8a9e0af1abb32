// The mel options that `verify-parity --reference` compares: those of a preset, changed by --set,
// those of a mel node of a pipeline, or the front end of a model's own file.
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

/// The library whose classes are compared by the files that they wrote.
inline constexpr const char* kTransformersLibrary = "transformers";

/// The comparison that the arguments ask for.
struct ParityQuestion {
  std::string library;  ///< "": the library of the pipeline's preset
  std::vector<std::string> presets;
  std::string pipeline, node;  ///< "": no pipeline; its only mel node
  std::string model;           ///< a model's file or folder; "": none
  PlanOverrides overrides;
};

/// Returns all options of a mel stage that has these, with derived defaults. `where`: before the
/// names of options in messages. Throws ConfigError.
nlohmann::ordered_json mel_settings(const Value& options, const std::string& where);

/// Returns {"reference": the library, "preset", "settings": mel_settings(), "changed": names of
/// options that differ from the preset, "remark"}, and of a pipeline "pipeline" and "node"; of a
/// model {"reference", "model": the value of `preset`, "changed": keys beside its file}. Throws
/// ConfigError for a wrong option, pipeline or model, RunError where it is not clear which node or
/// library is meant, UsageError where the library lacks the preset or the pipeline the node.
nlohmann::ordered_json parity_options(const ParityQuestion& question);

}  // namespace melflow
