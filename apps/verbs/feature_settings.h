// What the features of a file, or of a pipeline, are: the settings that can change a value.
//
// In:  a file of features, or a pipeline (YAML, or the name of one that comes with melflow).
// Out: the settings in the order of the data, stage by stage, and who computes them.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/verbs/plan_arguments.h"

namespace melflow {

struct FeatureSettings {
  using Json = nlohmann::ordered_json;
  struct Stage {
    std::string name;  ///< "resample", the second one of a pipeline "resample 2"
    std::vector<std::pair<std::string, Json>> settings;
  };

  std::string path;  ///< as it was given
  std::string fingerprint, preset;
  std::string melflow_version;  ///< of a pipeline: this program's
  /// Of a pipeline: as planned. Where that is settled in the run, with devices, the instruction set
  /// is "" and the backend "cuda", or "auto".
  std::string backend, instruction_set;
  std::vector<Stage> stages;
};

/// A file that is there is one of features unless it ends in .yaml or .yml; what is not there is
/// looked for among the pipelines that come with melflow unless its name has an ending. `overrides`
/// (--set, --var) are for pipelines, whose variables are added to `asked`. Throws RunError,
/// ConfigError.
FeatureSettings read_feature_settings(const std::string& path, const PlanOverrides& overrides,
                                      std::set<std::string>& asked);

/// A line for each setting, "mel.n_mels: 80", the hash and the preset before them. Nothing in it
/// depends on the file's name, so that two of them can be compared by any tool.
std::string feature_settings_text(const FeatureSettings& settings);
nlohmann::ordered_json feature_settings_json(const FeatureSettings& settings);

/// A setting, or a stage as a whole (null where it is not), that is not the same in both.
struct SettingDifference {
  std::string setting;
  FeatureSettings::Json a, b;
  bool in_a = true, in_b = true;
};
std::vector<SettingDifference> differences(const FeatureSettings& a, const FeatureSettings& b);

/// A setting as text: bare, without the quotes of JSON.
std::string setting_text(const nlohmann::ordered_json& value);

}  // namespace melflow
