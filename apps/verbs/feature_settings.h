// Finds the settings of a feature file, or of a pipeline, that can change a value of the features.
//
// In:  a file of features, or a pipeline (YAML, or the name of one that comes with melflow).
// Out: the settings in the order of the data, stage by stage, and the backend that computes the
// rows.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/verbs/plan_arguments.h"

namespace melflow {

struct FeatureSettings {
  using Json = nlohmann::ordered_json;
  struct Stage {
    std::string name;  ///< "resample"; "resample 2" for the second such stage
    Json settings = Json::object();
  };

  std::string path;        ///< as it was given
  std::string output;      ///< of a pipeline: the name of the node that writes these rows
  std::string written_to;  ///< of a pipeline: the option `path` of that node, "" where it has none
  std::string fingerprint, preset;
  std::string melflow_version;  ///< of the program that made the file; for a pipeline, of this one
  /// For a pipeline, as planned: with devices, which are opened in the run only, the instruction
  /// set is "" and the backend "cuda" or "auto".
  std::string backend, instruction_set;
  std::vector<Stage> stages;
};

/// Reads the settings of a feature file, or of every output of a pipeline; at least one. An
/// existing file has features unless it ends in .yaml or .yml; a name without an ending that is no
/// file is one of the pipelines that come with melflow. `overrides` (--set, --var) apply to
/// pipelines, whose variables are added to `asked`. Throws RunError, ConfigError.
std::vector<FeatureSettings> read_feature_settings(const std::string& path,
                                                   const PlanOverrides& overrides,
                                                   std::set<std::string>& asked);

/// The output called `name`, or nullptr.
const FeatureSettings* find_output(const std::vector<FeatureSettings>& outputs,
                                   const std::string& name);
/// The one output that writes the file `path`: that very file, or else one of that name; also where
/// `path` is the file of a split. nullptr where none does, or several do.
const FeatureSettings* find_written(const std::vector<FeatureSettings>& outputs,
                                    const std::string& path);
/// All outputs have the same features.
bool are_alike(const std::vector<FeatureSettings>& outputs);
/// "a.yaml has several outputs whose features differ (x, y); name one of them: --output x"
std::string name_an_output(const std::vector<FeatureSettings>& outputs);
/// ""there is no output 'z' in a.yaml. Did you mean 'x'?; it has x, y""
std::string no_such_output(const std::vector<FeatureSettings>& outputs, const std::string& name);

/// A line for each setting, "mel.n_mels: 80", after the hash and the preset. The text does not
/// depend on the file's name, so that two such texts can be compared by any tool.
std::string feature_settings_text(const FeatureSettings& settings);
nlohmann::ordered_json feature_settings_json(const FeatureSettings& settings);

/// A setting, or a whole stage (null where it is missing), that differs between two files.
struct SettingDifference {
  std::string setting;
  FeatureSettings::Json a, b;
  bool in_a = true, in_b = true;
};
std::vector<SettingDifference> differences(const FeatureSettings& a, const FeatureSettings& b);

/// A setting as text, without the quotes of JSON.
std::string setting_text(const nlohmann::ordered_json& value);

}  // namespace melflow
