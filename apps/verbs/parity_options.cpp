#include "apps/verbs/parity_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/json_value.h"
#include "apps/usage_errors.h"
#include "config/overrides.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/features/mel_stage_options.h"
#include "stages/model_files/model_file.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMel = "mel";

bool has_preset(const ParityLibrary& library, const std::string& preset) {
  return std::find(library.presets.begin(), library.presets.end(), preset) != library.presets.end();
}

// Chooses the library's preset to compare. `own`: the preset of the pipeline, "" without one.
const MelPreset& preset_of(const ParityQuestion& question, const ParityLibrary& l,
                           const std::string& own) {
  if (question.presets.size() > 1)
    throw UsageError(
        "--reference compares with one preset, but several are given; leave only one --preset");
  if (question.presets.empty()) return *find_preset(has_preset(l, own) ? own : l.presets.front());
  const std::string& name = question.presets.front();
  if (!has_preset(l, name))
    throw UsageError(fmt::format("--preset {}: {} has no such preset; it has {}", name, l.name,
                                 fmt::join(l.presets, ", ")));
  return *find_preset(name);
}

Value echo_of(MelStageOptions options) {
  Schema schema;
  options.describe(schema);
  return schema.echo();
}

Value resolved(const MelStageOptions& options) {
  MelStageOptions out;
  out.set(resolve(options.resolved()));
  return echo_of(std::move(out));
}

// Reads the options of a mel stage. `problems`: those that are known already.
MelStageOptions read_mel(const Value& options, const std::string& where, Problems problems = {}) {
  MelStageOptions out;
  Schema schema;
  out.describe(schema);
  schema.read(options, where, problems);
  for (const MelOptionProblem& p : out.check_times(out.resolved().sample_rate))
    problems.add({}, where + p.message);
  if (problems.empty())
    for (const MelOptionProblem& p : check(out.resolved())) problems.add({}, where + p.message);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return out;
}

Json options_json(const ParityLibrary& library, const MelPreset& preset,
                  const MelStageOptions& options, const std::vector<std::string>& changed) {
  return {{"reference", library.name},
          {"preset", preset.name},
          {"settings", json_of(resolved(options))},
          {"changed", changed},
          {"remark", options.preset_remark()}};
}

// The options of the preset, changed by --set as on a node mel with this preset.
Json of_preset(const ParityQuestion& question, const ParityLibrary& library) {
  const MelPreset& preset = preset_of(question, library, "");
  Value mel = Value::map({}), graph = Value::map({}), root = Value::map({});
  mel.set("preset", Value::scalar(std::string(preset.name)));
  graph.set(kMel, std::move(mel));
  root.set("graph", std::move(graph));
  Problems problems;
  apply_overrides(root, question.overrides.assignments(), problems);
  if (root.entries().size() > 1 || root.find("graph")->entries().size() > 1)
    problems.add({}, "--set: only options of mel can be set here, as in mel.n_mels=64");
  const Value& node = *root.find("graph")->find(kMel);
  std::vector<std::string> changed;
  for (const Value::Entry& e : node.entries())
    if (e.key_mark.file != nullptr) changed.push_back(e.key);
  for (const std::string& name : changed) {
    if (name == "preset") problems.add({}, "mel.preset: here the preset is given by --preset");
    if (name == "precision")
      problems.add(
          {}, "mel.precision: rows of both precisions are always compared; leave this option out");
  }
  return options_json(library, preset, read_mel(node, "mel.", std::move(problems)), changed);
}

struct MelNode {
  std::string name;
  MelStageOptions options;
  Value settings;  // all settings that can change a value
};

// Where no sample rate is written, the settings get the rate that the plan found.
MelNode mel_node(const PlanNode& node) {
  MelNode out{node.written.empty() ? node.name : node.written, {}, {}};
  Value own = Value::map({});
  Schema known;
  MelStageOptions().describe(known);
  for (const Value::Entry& e : node.options.entries())
    for (const Field& f : known.fields())
      if (f.name == e.key) own.set(e.key, e.value);
  for (const Value& stage : node.stage->feature_settings().items())
    if (const Value* rate = stage.find("sample_rate");
        rate != nullptr && stage.find("stage")->text() == kMel)
      own.set("sample_rate", *rate);
  out.options = read_mel(own, out.name + ".");
  out.settings = MelStageOptions::canonical(out.options.resolved());
  return out;
}

// Returns the mel node to compare. Several nodes with the same settings count as one.
MelNode mel_node(const ParityQuestion& question) {
  const std::string& pipeline = question.pipeline;
  std::set<std::string> asked;
  const Plan plan = question.overrides.look_at(pipeline, asked);
  question.overrides.check_used(asked);
  std::vector<MelNode> nodes;
  for (const PlanNode& n : plan.nodes)
    if (n.info->name == std::string(kMel)) nodes.push_back(mel_node(n));
  if (nodes.empty())
    throw RunError(fmt::format(
        "{}: has no node of the stage mel, whose rows are compared; name a pipeline with one",
        pipeline));
  std::vector<std::string> names;
  for (const MelNode& n : nodes) {
    if (n.name == question.node) return n;
    names.push_back(n.name);
  }
  if (!question.node.empty())
    throw UsageError(fmt::format("--node {}: {} has no such mel node{}; it has {}",
                                 excerpt(question.node), pipeline,
                                 did_you_mean(question.node, names), fmt::join(names, ", ")));
  for (const MelNode& n : nodes)
    if (to_json(n.settings) != to_json(nodes.front().settings))
      throw RunError(
          fmt::format("{} has several mel nodes whose settings differ ({}); name one: --node {}",
                      pipeline, fmt::join(names, ", "), names.front()));
  return nodes.front();
}

// Lists settings that differ from the preset both as written and as resolved.
std::vector<std::string> differing(const MelNode& node, const MelPreset& preset) {
  MelStageOptions of_preset;
  of_preset.set(preset.options);
  const Value theirs = MelStageOptions::canonical(preset.options);
  const Value written = echo_of(node.options), their_written = echo_of(of_preset);
  const auto is_same = [](const Value& a, const Value& b, const std::string& key) {
    const Value *of_a = a.find(key), *of_b = b.find(key);
    return of_a != nullptr && of_b != nullptr && to_json(*of_a) == to_json(*of_b);
  };
  std::vector<std::string> out;
  for (const Value::Entry& e : node.settings.entries())
    if (e.key != "precision" && !is_same(node.settings, theirs, e.key) &&
        !is_same(written, their_written, e.key))
      out.push_back(e.key);
  return out;
}

// title: of a model's file, as in ModelFrontEnd.
bool is_of_transformers(const std::string& title) {
  return title.find(fmt::format(" of {} ", kTransformersLibrary)) != std::string::npos;
}

// Why no library is found for the node, and what to do. `own`: its preset, "" without one.
std::string no_library(const MelNode& node, const std::string& own,
                       const std::vector<std::string>& libraries) {
  const std::string& model = node.options.preset_of;
  if (!model.empty() && is_of_transformers(model))
    return fmt::format(
        "the preset of {} is a model's file ({}), which is compared by itself: "
        "--reference {} FOLDER, with the model's folder",
        node.name, model, kTransformersLibrary);
  const std::string what =
      !model.empty() ? fmt::format(
                           "the preset of {} is a model's file ({}), which no --reference "
                           "compares by itself",
                           node.name, model)
      : !own.empty() ? fmt::format(
                           "the preset of {}, {}, is of no library that --reference "
                           "compares with",
                           node.name, own)
                     : node.name + " has no preset, which would say which library is meant";
  return fmt::format("{}; give --reference, one of {}{}", what, fmt::join(libraries, ", "),
                     model.empty() && own.empty()
                         ? ""
                         : "; the settings are compared with those of its own preset");
}

Json of_pipeline(const ParityQuestion& question, const ParityLibrary* library) {
  const MelNode node = mel_node(question);
  const std::string own =
      node.options.preset.preset != nullptr ? std::string(node.options.preset.preset->name) : "";
  std::vector<std::string> names;
  for (const ParityLibrary& l : parity_libraries()) {
    names.push_back(l.name);
    if (library == nullptr && has_preset(l, own)) library = &l;
  }
  if (library == nullptr) throw RunError(question.pipeline + ": " + no_library(node, own, names));
  const MelPreset& preset = preset_of(question, *library, own);
  Json out = options_json(*library, preset, node.options, differing(node, preset));
  out.update({{"pipeline", question.pipeline}, {"node", node.name}});
  return out;
}

// The front end of a model's file, with the keys that --set gives beside it.
Json of_model(const ParityQuestion& question) {
  if (!question.presets.empty() || !question.node.empty() || !question.overrides.vars.empty())
    throw UsageError(
        "--preset, --node and --var: --reference transformers compares by a model's file alone; "
        "leave them out");
  Value model = Value::map({{kModelFileKey, Value::scalar(question.model, {}, true), {}}});
  Value graph = Value::map({{"model", std::move(model), {}}});
  Value root = Value::map({{"graph", std::move(graph), {}}});
  Problems problems;
  apply_overrides(root, question.overrides.assignments(), problems);
  if (root.entries().size() > 1 || root.find("graph")->entries().size() > 1)
    problems.add({}, "--set: only keys of the model can be set here, as in model.dither=0");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  const Value& preset = *root.find("graph")->find("model");
  const ModelFrontEnd of = read_model_file(preset);
  if (!is_of_transformers(of.title))
    throw RunError(
        fmt::format("{}: is read as {}, and --reference transformers compares with "
                    "classes of transformers alone",
                    excerpt(question.model), of.title));
  std::vector<std::string> changed;
  for (const Value::Entry& e : preset.entries())
    if (e.key != kModelFileKey) changed.push_back(e.key);
  return {{"reference", question.library}, {"model", json_of(preset)}, {"changed", changed}};
}

}  // namespace

const std::vector<ParityLibrary>& parity_libraries() {
  static const std::vector<ParityLibrary> all{
      {"librosa", {"librosa"}, true},
      {"torchaudio", {"torchaudio"}, false},
      {"kaldi-native-fbank", {"kaldi", "kaldi_htk"}, false},
      {"whisper", {"whisper", "whisper_large_v3"}, true},
      {"nemo", {"nemo"}, false},
      {"speechbrain", {"speechbrain"}, false},
      {"hifigan", {"hifigan"}, false},
      {"ast", {"ast"}, false},
  };
  return all;
}

Json mel_settings(const Value& options, const std::string& where) {
  if (const Value* preset = options.find("preset"); preset != nullptr && is_model_file(*preset)) {
    const ModelFrontEnd of = read_model_file(*preset);
    if (of.nodes.size() > 1 || of.main().stage != "mel")
      throw ConfigError(where + "preset: this is of mel alone, and " + of.title +
                        " has other nodes, too");
    Value written = Value::map({});
    for (const ModelFrontEnd::Option& option : of.main().options)
      written.set(option.name, option.value);
    for (const Value::Entry& e : options.entries())
      if (e.key != "preset") written.set(e.key, e.value);
    return mel_settings(written, where);
  }
  return json_of(resolved(read_mel(options, where)));
}

Json parity_options(const ParityQuestion& question) {
  if (!question.model.empty()) return of_model(question);
  const auto& all = parity_libraries();
  const auto library = std::find_if(
      all.begin(), all.end(), [&](const ParityLibrary& l) { return l.name == question.library; });
  if (!question.pipeline.empty())
    return of_pipeline(question, library == all.end() ? nullptr : &*library);
  return of_preset(question, *library);
}

}  // namespace melflow
