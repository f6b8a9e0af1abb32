#include "apps/parity/vectors.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/json_value.h"
#include "apps/parity/audio.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "stages/features/mel_stage_options.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostVectors = 256 << 20;  // [bytes]

Json parse(const std::string& text) {
  Json out = parse_shallow<Json>(text);
  if (out.is_discarded() || !out.is_object())
    throw RunError("this is not a JSON document, or is damaged");
  return out;
}

template <class T>
T need(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) throw RunError(fmt::format("'{}' is missing", key));
  try {
    return it->get<T>();
  } catch (const Json::exception&) {
    throw RunError(
        fmt::format("'{}' is {}, which is not a value for it", key, it->dump().substr(0, 60)));
  }
}

// Calls visit(entry) for each entry of a list; adds the entry's position and name to exceptions.
template <class Visit>
void each(const Json& object, const char* key, const Visit& visit) {
  const auto list = need<std::vector<Json>>(object, key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& entry = list[i];
    try {
      if (!entry.is_object()) throw RunError("is not an object");
      visit(entry);
    } catch (const std::exception& e) {
      const std::string name = entry.is_object() ? entry.value("name", "") : "";
      throw RunError(
          fmt::format("{}[{}]{}: {}", key, i, name.empty() ? "" : " '" + name + "'", e.what()));
    }
  }
}

void check_signal(const Json& json) {
  const auto name = need<std::string>(json, "signal");
  const int rate = need<int>(json, "sample_rate");
  const std::vector<std::int16_t> ours = parity_signal(name, rate);
  const auto expected = need<std::uint32_t>(json, "fnv1a");
  if (const std::uint32_t sum = fnv1a(ours); sum != expected)
    throw RunError(
        fmt::format("the checksum of '{}' at {} Hz is {} here, the vectors were made with {}: the "
                    "signals differ, so nothing can be compared",
                    name, rate, sum, expected));
}

std::pair<std::string, ParityTolerance> read_tolerance(const std::string& preset,
                                                       const Json& json) {
  ParityTolerance out;
  if (json.contains("atol") && !json["atol"].is_null()) {
    out.atol = need<double>(json, "atol");
    out.rtol = need<double>(json, "rtol");
    out.source = need<std::string>(json, "source");
  }
  return {preset, out};
}

ParitySource read_source(const Json& json) {
  return {need<std::string>(json, "library"), need<std::string>(json, "version"),
          need<std::string>(json, "function")};
}

MelOptions read_options(const Json& json, const std::string& preset) {
  Value settings = value_of(need<Json>(json, "options"));
  settings.set("preset", Value::scalar(preset));
  settings.set("sample_rate", Value::scalar(std::to_string(need<int>(json, "sample_rate"))));
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  Problems problems;
  schema.read(settings, "options.", problems);
  if (!problems.empty()) throw RunError(problems.str());
  MelOptions out = stage.resolved();
  for (const MelOptionProblem& p : check(out)) throw RunError(p.message);
  return out;
}

CepstrumOptions read_cepstrum(const Json& json, const MelOptions& mel) {
  CepstrumOptions out;
  out.n_mfcc = need<int>(json, "n_mfcc");
  out.dct_type = need<int>(json, "dct_type");
  out.norm = need<bool>(json, "ortho") ? CepstrumOptions::Norm::ortho : CepstrumOptions::Norm::none;
  out.lifter = need<double>(json, "lifter");
  out.lifter_style = need<std::string>(json, "lifter_style") == "kaldi"
                         ? CepstrumOptions::LifterStyle::kaldi
                         : CepstrumOptions::LifterStyle::librosa;
  out.htk_compat = mel.htk_compat;
  return out;
}

ParityRow read_row(const Json& json, const ParityCase& its) {
  ParityRow out{need<std::int64_t>(json, "frame"), need<std::vector<double>>(json, "values"), {}};
  if (json.contains("own_error")) out.own_error = need<std::vector<double>>(json, "own_error");
  if (out.frame < 0 || out.frame >= its.frames)
    throw RunError(fmt::format("frame {} is not among its {}", out.frame, its.frames));
  const auto columns = static_cast<std::size_t>(its.columns);
  if (out.values.size() != columns || (!out.own_error.empty() && out.own_error.size() != columns))
    throw RunError(fmt::format("has {} values, must have {}", out.values.size(), columns));
  return out;
}

ParityCase read_case(const Json& json) {
  ParityCase out;
  out.name = need<std::string>(json, "name");
  out.preset = need<std::string>(json, "preset");
  out.source = read_source(json);
  out.options = read_options(json, out.preset);
  if (json.contains("mfcc")) out.cepstrum = read_cepstrum(json["mfcc"], out.options);
  out.signal = need<std::string>(json, "signal");
  out.samples = need<std::int64_t>(json, "samples");
  out.left_out = json.value("left_out", "");
  if (!out.left_out.empty()) return out;
  out.frames = need<std::int64_t>(json, "frames");
  out.columns = need<int>(json, "bands");
  each(json, "rows", [&](const Json& row) { out.rows.push_back(read_row(row, out)); });
  return out;
}

ParityDelta read_delta(const Json& json) {
  static const std::map<std::string, DeltaOptions::Method> methods{
      {"regression", DeltaOptions::Method::regression},
      {"kaldi", DeltaOptions::Method::kaldi},
      {"librosa", DeltaOptions::Method::librosa}};
  ParityDelta out;
  out.name = need<std::string>(json, "name");
  out.source = read_source(json);
  const auto method = methods.find(need<std::string>(json, "method"));
  if (method == methods.end()) throw RunError("'method' is none of regression, kaldi, librosa");
  out.options = {need<int>(json, "order"), need<int>(json, "width"), method->second};
  out.input = need<std::vector<std::vector<double>>>(json, "input");
  out.output = need<std::vector<std::vector<double>>>(json, "output");
  for (const auto* rows : {&out.input, &out.output})
    for (const std::vector<double>& row : *rows)
      if (out.input.size() != out.output.size() || row.size() != out.input.front().size())
        throw RunError("'input' and 'output' are not of one shape");
  return out;
}

ParityVectors read(const Json& json) {
  ParityVectors out;
  each(json, "signals", check_signal);
  const auto tolerances = need<Json>(json, "tolerances");
  for (const auto& [preset, fields] : tolerances.items())
    out.presets.push_back(read_tolerance(preset, fields));
  each(json, "cases", [&](const Json& one) {
    out.cases.push_back(read_case(one));
    static_cast<void>(out.tolerance(out.cases.back().preset));
  });
  each(json, "deltas", [&](const Json& one) { out.deltas.push_back(read_delta(one)); });
  if (out.cases.empty()) throw RunError("has no cases");
  return out;
}

}  // namespace

const ParityTolerance& ParityVectors::tolerance(const std::string& preset) const {
  for (const auto& [name, tolerance] : presets)
    if (name == preset) return tolerance;
  throw RunError(fmt::format("'tolerances' has no preset '{}'", preset));
}

ParityVectors read_parity_vectors(const std::string& path) {
  const std::string text = InputFile(path, Pipes::by_descriptor).read_all(kMostVectors);
  try {
    return read(parse(text));
  } catch (const std::exception& e) {
    throw RunError(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace melflow
