// Finds the settings of a feature file, or of a pipeline, that can change the values of features.
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

  std::string path;        ///< as the user wrote it
  std::string output;      ///< for a pipeline, the name of the node that writes these rows
  std::string written_to;  ///< for a pipeline, the option `path` of that node, "" where it has none
  std::string fingerprint, preset;
  std::string melflow_version;  ///< that made the file; for a pipeline, this program's
  /// For a pipeline, the planned ones. Devices are only opened in a run, so for a plan with devices
  /// the instruction set is "" and the backend "cuda" or "auto".
  std::string backend, instruction_set;
  std::vector<Stage> stages;
};

/// Reads the settings of a feature file, of a front end (front_end_pipeline()), or of every output
/// of a pipeline (at least one). Another existing file counts as features unless it ends in .yaml
/// or .yml; a name without an extension that is no file names a pipeline that comes with melflow.
/// `overrides` (--set, --var) apply to pipelines, whose variables are added to `asked`. Throws
/// RunError, ConfigError.
std::vector<FeatureSettings> read_feature_settings(const std::string& path,
                                                   const PlanOverrides& overrides,
                                                   std::set<std::string>& asked);

/// The pipeline that a front end stands for: a model's own file or folder, or a preset where no
/// pipeline has its name; "" for anything else.
std::string front_end_pipeline(const std::string& name);
/// The rate [Hz] of such a front end; 0 for anything else.
int front_end_rate(const std::string& name);

/// Returns the output called `name`, or nullptr.
const FeatureSettings* find_output(const std::vector<FeatureSettings>& outputs,
                                   const std::string& name);
/// Returns the one output that writes the file `path`: the very same file, or else one with the
/// same name. `path` may also be the file of a split. Returns nullptr for no output or several.
const FeatureSettings* find_written(const std::vector<FeatureSettings>& outputs,
                                    const std::string& path);
/// Whether all outputs have the same features.
bool are_alike(const std::vector<FeatureSettings>& outputs);
/// Returns "a.yaml has several outputs whose features differ (x, y); name one of them: --output x".
std::string name_an_output(const std::vector<FeatureSettings>& outputs);
/// Returns "there is no output 'z' in a.yaml. Did you mean 'x'?; it has x, y".
std::string no_such_output(const std::vector<FeatureSettings>& outputs, const std::string& name);

/// Returns a line for each setting, "mel.n_mels: 80", after the hash and the preset. The text does
/// not depend on the file's name, so any tool can compare two such texts.
std::string feature_settings_text(const FeatureSettings& settings);
nlohmann::ordered_json feature_settings_json(const FeatureSettings& settings);

/// A setting, or a whole stage (null where it is missing), that differs between two files.
struct SettingDifference {
  std::string setting;
  FeatureSettings::Json a, b;
  bool in_a = true, in_b = true;
};
std::vector<SettingDifference> differences(const FeatureSettings& a, const FeatureSettings& b);

/// Returns a setting as text, without JSON's quotes.
std::string setting_text(const nlohmann::ordered_json& value);

}  // namespace melflow
