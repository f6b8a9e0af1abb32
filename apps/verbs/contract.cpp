#include "apps/verbs/contract.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "apps/json_value.h"
#include "pipeline/text.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/feature_hash.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/row_sink.h"
#include "stages/version.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

using Json = Contract::Json;

bool is_pipeline(const std::string& path) {
  const std::string ending = fs::path(path).extension();
  if (ending == ".yaml" || ending == ".yml") return true;
  std::error_code error;
  return ending.empty() && !fs::exists(path, error);
}

std::vector<Contract::Stage> stages_of(const Json& features) {
  std::vector<Contract::Stage> out;
  std::map<std::string, int> seen;
  for (const Json& options : features) {
    const auto name = options.at("stage").get<std::string>();
    const int count = ++seen[name];
    out.push_back({count == 1 ? name : fmt::format("{} {}", name, count), {}});
    for (const auto& [key, value] : options.items())
      if (key != "stage") out.back().settings.emplace_back(key, value);
  }
  return out;
}

Contract of_file(const std::string& path) {
  const FeatureFile file(path);
  Contract out;
  out.path = path;
  out.feature_hash = file.text("feature_hash");
  out.preset = file.text("preset");
  out.melflow_version = file.text("melflow_version");
  out.backend = file.text("backend");
  out.instruction_set = file.text("instruction_set");
  try {
    out.stages = stages_of(parse_settings(file.text("features")));
  } catch (const std::exception&) {
    throw RunError(path +
                   ": does not say what its features are: its attribute 'features' is missing, or "
                   "is no list of stages; was the file written by melflow?");
  }
  return out;
}

Contract of_pipeline(const std::string& path, const PlanOverrides& overrides) {
  const Plan plan = overrides.load(path);
  const Value* features = nullptr;
  const melflow::Stage* sink = nullptr;
  for (const PlanNode& n : plan.nodes) {
    if (n.info->traits.kind != StageKind::sink) continue;
    if (features != nullptr && to_json(*features) != to_json(n.stage->contract()))
      throw RunError(
          path +
          ": has several outputs whose features differ; name one of the files that it wrote");
    features = &n.stage->contract();
    sink = n.stage.get();
  }
  if (features == nullptr) throw RunError(path + ": has no output");
  Contract out;
  out.path = path;
  out.feature_hash = feature_hash(*features);
  out.melflow_version = kVersion;
  out.stages = stages_of(json_of(*features));
  if (const auto* rows = dynamic_cast<const RowSink*>(sink)) {
    out.preset = rows->info().preset;
    out.backend = rows->info().computed_by->backend;
    out.instruction_set = rows->info().computed_by->instruction_set;
  }
  return out;
}

const Contract::Stage* find(const Contract& contract, const std::string& name) {
  for (const Contract::Stage& s : contract.stages)
    if (s.name == name) return &s;
  return nullptr;
}

const Json* find(const Contract::Stage& stage, const std::string& name) {
  for (const auto& [key, value] : stage.settings)
    if (key == name) return &value;
  return nullptr;
}

Json settings_json(const Contract::Stage& stage) {
  Json out = Json::object();
  for (const auto& [key, value] : stage.settings) out[key] = value;
  return out;
}

void compare_stage(const Contract::Stage& a, const Contract::Stage& b,
                   std::vector<ContractDifference>& out) {
  for (const auto& [key, value] : a.settings) {
    const Json* other = find(b, key);
    if (other == nullptr)
      out.push_back({a.name + "." + key, value, {}, true, false});
    else if (*other != value)
      out.push_back({a.name + "." + key, value, *other});
  }
  for (const auto& [key, value] : b.settings)
    if (find(a, key) == nullptr) out.push_back({a.name + "." + key, {}, value, false, true});
}

// The names of the stages that both have, in the order of `contract`.
std::vector<std::string> shared_stages(const Contract& contract, const Contract& other) {
  std::vector<std::string> out;
  for (const Contract::Stage& s : contract.stages)
    if (find(other, s.name) != nullptr) out.push_back(s.name);
  return out;
}

}  // namespace

Contract read_contract(const std::string& path, const PlanOverrides& overrides) {
  return is_pipeline(path) ? of_pipeline(path, overrides) : of_file(path);
}

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string contract_text(const Contract& contract) {
  std::string out = fmt::format("feature_hash: {}\n", one_line(contract.feature_hash));
  if (!contract.preset.empty()) out += fmt::format("preset: {}\n", one_line(contract.preset));
  for (const Contract::Stage& s : contract.stages) {
    if (s.settings.empty()) out += fmt::format("{}: {{}}\n", one_line(s.name));
    for (const auto& [key, value] : s.settings)
      out += one_line(fmt::format("{}.{}: {}", s.name, key, setting_text(value))) + "\n";
  }
  return out;
}

Json contract_json(const Contract& contract) {
  Json out{{"path", contract.path},       {"feature_hash", contract.feature_hash},
           {"preset", contract.preset},   {"melflow_version", contract.melflow_version},
           {"backend", contract.backend}, {"instruction_set", contract.instruction_set},
           {"stages", Json::array()}};
  for (const Contract::Stage& s : contract.stages)
    out["stages"].push_back({{"name", s.name}, {"settings", settings_json(s)}});
  return out;
}

std::vector<ContractDifference> differences(const Contract& a, const Contract& b) {
  std::vector<ContractDifference> out;
  for (const Contract::Stage& s : a.stages) {
    if (const Contract::Stage* other = find(b, s.name))
      compare_stage(s, *other, out);
    else
      out.push_back({s.name, settings_json(s), {}, true, false});
  }
  for (const Contract::Stage& s : b.stages)
    if (find(a, s.name) == nullptr) out.push_back({s.name, {}, settings_json(s), false, true});
  const auto in_a = shared_stages(a, b), in_b = shared_stages(b, a);
  if (in_a != in_b)
    out.push_back({"order of the stages", fmt::format("{}", fmt::join(in_a, ", ")),
                   fmt::format("{}", fmt::join(in_b, ", "))});
  return out;
}

}  // namespace melflow
