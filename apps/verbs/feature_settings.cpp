#include "apps/verbs/feature_settings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/json_value.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_ends.h"
#include "stages/model_files/model_file.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/row_sink.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

using Json = FeatureSettings::Json;

std::vector<FeatureSettings::Stage> stages_of(const Json& features) {
  std::vector<FeatureSettings::Stage> out;
  std::map<std::string, int> seen;
  for (const Json& options : features) {
    const auto name = options.at("stage").get<std::string>();
    const int count = ++seen[name];
    out.push_back({count == 1 ? name : fmt::format("{} {}", name, count), options});
    out.back().settings.erase("stage");
  }
  return out;
}

FeatureSettings of_file(const std::string& path) {
  const FeatureFile file(path);
  FeatureSettings out;
  out.path = path;
  out.fingerprint = file.text("feature_fingerprint");
  out.preset = file.text("preset");
  out.melflow_version = file.text("melflow_version");
  out.backend = file.text("backend");
  out.instruction_set = file.text("instruction_set");
  try {
    out.stages = stages_of(parse_settings(file.text("feature_settings")));
  } catch (const std::exception&) {
    throw RunError(path +
                   ": does not say what its features are: its attribute 'feature_settings' is "
                   "missing, or is not a list of stages; was the file written by melflow?");
  }
  return out;
}

FeatureSettings of_sink(const std::string& path, const PlanNode& node) {
  const Value& features = node.stage->feature_settings();
  FeatureSettings out;
  out.path = path;
  out.output = node.name;
  if (const Value* written = node.config->schema().echo().find("path"))
    out.written_to = written->text();
  out.fingerprint = feature_fingerprint(features);
  out.melflow_version = kVersion;
  out.stages = stages_of(json_of(features));
  if (const auto* rows = dynamic_cast<const RowSink*>(node.stage.get())) {
    out.preset = rows->info().preset;
    out.backend = rows->info().computed_by->backend;
    out.instruction_set = rows->info().computed_by->instruction_set;
  }
  return out;
}

// Reads the sinks that write rows; if there are none, the settings of the other sinks' input.
std::vector<FeatureSettings> of_plan(const std::string& path, const Plan& plan) {
  std::vector<FeatureSettings> written, others;
  for (const PlanNode& n : plan.nodes) {
    if (n.info->traits.kind != StageKind::sink) continue;
    const bool is_written = dynamic_cast<const RowSink*>(n.stage.get()) != nullptr;
    (is_written ? written : others).push_back(of_sink(path, n));
  }
  if (written.empty()) written = std::move(others);
  if (written.empty())
    throw RunError(
        path +
        ": this pipeline has no output; end it with a node that writes rows, such as hdf5_write");
  return written;
}

std::vector<std::string> output_names(const std::vector<FeatureSettings>& outputs) {
  std::vector<std::string> names;
  names.reserve(outputs.size());
  for (const FeatureSettings& o : outputs) names.push_back(o.output);
  return names;
}

const FeatureSettings::Stage* find(const FeatureSettings& settings, const std::string& name) {
  for (const FeatureSettings::Stage& s : settings.stages)
    if (s.name == name) return &s;
  return nullptr;
}

void compare_stage(const FeatureSettings::Stage& a, const FeatureSettings::Stage& b,
                   std::vector<SettingDifference>& out) {
  for (const auto& [key, value] : a.settings.items()) {
    if (!b.settings.contains(key))
      out.push_back({a.name + "." + key, value, {}, true, false});
    else if (b.settings[key] != value)
      out.push_back({a.name + "." + key, value, b.settings[key]});
  }
  for (const auto& [key, value] : b.settings.items())
    if (!a.settings.contains(key)) out.push_back({a.name + "." + key, {}, value, false, true});
}

// Returns the names of the stages that both have, in the order of `settings`.
std::vector<std::string> shared_stages(const FeatureSettings& settings,
                                       const FeatureSettings& other) {
  std::vector<std::string> out;
  for (const FeatureSettings::Stage& s : settings.stages)
    if (find(other, s.name) != nullptr) out.push_back(s.name);
  return out;
}

}  // namespace

std::vector<FeatureSettings> read_feature_settings(const std::string& path,
                                                   const PlanOverrides& overrides,
                                                   std::set<std::string>& asked) {
  if (const std::string text = front_end_pipeline(path); !text.empty())
    return of_plan(path, overrides.look_at_text(text, path, asked));
  if (!is_pipeline_name(path)) return {of_file(path)};
  if (std::error_code error; fs::is_directory(find_pipeline(path), error))
    throw RunError(path + ": this is a folder; name a pipeline or an output of `melflow run`");
  return of_plan(path, overrides.look_at(path, asked));
}

int front_end_rate(const std::string& name) {
  if (is_model_path(name)) return read_model_file(Value::scalar(name)).sample_rate();
  const FrontEnd* of = find_front_end(name);
  const std::vector<std::string> shipped = shipped_pipeline_names();
  std::error_code error;  // a folder of this name is not meant: it is ./NAME
  if (of == nullptr || (fs::exists(name, error) && !fs::is_directory(name, error)) ||
      std::find(shipped.begin(), shipped.end(), name) != shipped.end())
    return 0;
  const MelPreset* of_mel = find_preset(name);
  return of_mel != nullptr ? of_mel->options.sample_rate : of->sample_rate_of("samples");
}

std::string front_end_pipeline(const std::string& name) {
  const int rate = front_end_rate(name);
  if (rate == 0) return {};
  const bool is_mel = is_model_path(name)
                          ? read_model_file(Value::scalar(name)).main().stage == "mel"
                          : find_preset(name) != nullptr;
  const std::string stage = is_mel ? "mel" : "samples";
  const Json node{{"stage", stage}, {"from", "resample"}, {"preset", name}};
  return Json{{"version", 1},
              {"graph",
               {{"files", {{"stage", "file_list"}, {"root", "/"}}},
                {"read", {{"stage", "disk_read"}, {"from", "files"}}},
                {"decode", {{"stage", "decode"}, {"from", "read"}}},
                {"resample", {{"stage", "resample"}, {"from", "decode"}, {"rate", rate}}},
                {stage, node},
                {"rows", {{"stage", "batches"}, {"from", stage}}}}}}
      .dump();
}

const FeatureSettings* find_output(const std::vector<FeatureSettings>& outputs,
                                   const std::string& name) {
  for (const FeatureSettings& o : outputs)
    if (!name.empty() && o.output == name) return &o;
  return nullptr;
}

const FeatureSettings* find_written(const std::vector<FeatureSettings>& outputs,
                                    const std::string& path) {
  const fs::path wanted(path);
  const auto in_full = [](const fs::path& p) {
    std::error_code error;
    const fs::path full = fs::weakly_canonical(p, error);
    return error ? p : full;
  };
  const auto only = [&](auto&& fits) {
    const FeatureSettings* found = nullptr;
    for (const FeatureSettings& o : outputs) {
      if (o.written_to.empty() || !fits(fs::path(o.written_to))) continue;
      if (found != nullptr) return static_cast<const FeatureSettings*>(nullptr);
      found = &o;
    }
    return found;
  };
  const auto has_name = [&](const fs::path& p) {
    const std::string name = wanted.filename(), begin = p.stem().string() + ".";
    return name == p.filename() ||
           (p.has_extension() && wanted.extension() == p.extension() && name.starts_with(begin) &&
            name.size() > begin.size() + p.extension().string().size());
  };
  if (const auto* o = only([&](const fs::path& p) { return in_full(p) == in_full(wanted); }))
    return o;
  return only(has_name);
}

bool are_alike(const std::vector<FeatureSettings>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const FeatureSettings& o) {
    return o.fingerprint == outputs.front().fingerprint;
  });
}

std::string name_an_output(const std::vector<FeatureSettings>& outputs) {
  return fmt::format(
      "{} has several outputs whose features differ ({}); name one of them: --output {}",
      outputs.front().path, fmt::join(output_names(outputs), ", "), outputs.front().output);
}

std::string no_such_output(const std::vector<FeatureSettings>& outputs, const std::string& name) {
  const std::string& path = outputs.front().path;
  if (outputs.front().output.empty())
    return fmt::format("{} is a file of rows and has no output '{}'", path, excerpt(name));
  const std::vector<std::string> names = output_names(outputs);
  return fmt::format("there is no output '{}' in {}{}; it has {}", excerpt(name), path,
                     did_you_mean(name, names), fmt::join(names, ", "));
}

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string feature_settings_text(const FeatureSettings& settings) {
  std::string out = fmt::format("feature_fingerprint: {}\n", one_line(settings.fingerprint));
  if (!settings.preset.empty()) out += fmt::format("preset: {}\n", one_line(settings.preset));
  for (const FeatureSettings::Stage& s : settings.stages) {
    if (s.settings.empty()) out += fmt::format("{}: {{}}\n", one_line(s.name));
    for (const auto& [key, value] : s.settings.items())
      out += one_line(fmt::format("{}.{}: {}", s.name, key, setting_text(value))) + "\n";
  }
  return out;
}

Json feature_settings_json(const FeatureSettings& settings) {
  Json out{{"path", settings.path},       {"feature_fingerprint", settings.fingerprint},
           {"preset", settings.preset},   {"melflow_version", settings.melflow_version},
           {"backend", settings.backend}, {"instruction_set", settings.instruction_set},
           {"stages", Json::array()}};
  for (const FeatureSettings::Stage& s : settings.stages)
    out["stages"].push_back({{"name", s.name}, {"settings", s.settings}});
  return out;
}

std::vector<SettingDifference> differences(const FeatureSettings& a, const FeatureSettings& b) {
  std::vector<SettingDifference> out;
  for (const FeatureSettings::Stage& s : a.stages) {
    if (const FeatureSettings::Stage* other = find(b, s.name))
      compare_stage(s, *other, out);
    else
      out.push_back({s.name, s.settings, {}, true, false});
  }
  for (const FeatureSettings::Stage& s : b.stages)
    if (find(a, s.name) == nullptr) out.push_back({s.name, {}, s.settings, false, true});
  const auto in_a = shared_stages(a, b), in_b = shared_stages(b, a);
  if (in_a != in_b)
    out.push_back({"order of the stages", fmt::format("{}", fmt::join(in_a, ", ")),
                   fmt::format("{}", fmt::join(in_b, ", "))});
  return out;
}

}  // namespace melflow
