#include "apps/verbs/parity_options.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/usage_errors.h"
#include "config/overrides.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/features/mel_stage_options.h"

namespace melflow {
namespace {

constexpr const char* kMel = "mel";

const ParityLibrary& library_named(const std::string& name) {
  for (const ParityLibrary& l : parity_libraries())
    if (l.name == name) return l;
  throw UsageError(fmt::format("--reference {}: this library cannot be asked", name));
}

bool has_preset(const ParityLibrary& library, const std::string& preset) {
  return std::find(library.presets.begin(), library.presets.end(), preset) != library.presets.end();
}

// Chooses the library's preset to compare. `own`: the preset of the pipeline, "" without one.
const MelPreset& preset_of(const ParityQuestion& question, const std::string& library,
                           const std::string& own) {
  const ParityLibrary& l = library_named(library);
  if (question.presets.size() > 1)
    throw UsageError(
        "--reference compares with one preset, but several are given; leave only one --preset");
  if (question.presets.empty()) return *find_preset(has_preset(l, own) ? own : l.presets.front());
  const std::string& name = question.presets.front();
  if (!has_preset(l, name))
    throw UsageError(fmt::format("--preset {}: {} has no such preset; those that it has are {}",
                                 name, l.name, fmt::join(l.presets, ", ")));
  return *find_preset(name);
}

// Returns the preset's options, changed by --set on a node mel with this preset.
ParityOptions of_preset(const ParityQuestion& question) {
  ParityOptions out;
  out.library = question.library;
  out.preset = &preset_of(question, question.library, "");
  Value mel = Value::map({}), graph = Value::map({}), root = Value::map({});
  mel.set("preset", Value::scalar(std::string(out.preset->name)));
  graph.set(kMel, std::move(mel));
  root.set("graph", std::move(graph));
  Problems problems;
  apply_overrides(root, question.overrides.assignments(), problems);
  if (root.entries().size() > 1)
    problems.add({}, "--set: only options of mel can be set here, as in mel.n_mels=64");
  const Value& node = *root.find("graph")->find(kMel);
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  schema.read(node, "mel.", problems);
  out.mel = stage.resolved();
  out.remark = stage.preset_remark();
  for (const Value::Entry& e : node.entries())
    if (e.key_mark.file != nullptr) out.changed.push_back(e.key);
  for (const std::string& name : out.changed) {
    if (name == "preset") problems.add({}, "mel.preset: here the preset is given by --preset");
    if (name == "precision")
      problems.add(
          {}, "mel.precision: rows of both precisions are always compared; leave this option out");
  }
  for (const MelOptionProblem& p : stage.check_times(out.mel.sample_rate))
    problems.add({}, "mel." + p.message);
  if (problems.empty())
    for (const MelOptionProblem& p : check(out.mel)) problems.add({}, "mel." + p.message);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return out;
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
  out.options.describe(known);
  for (const Value::Entry& e : node.options.entries())
    for (const Field& f : known.fields())
      if (f.name == e.key) own.set(e.key, e.value);
  for (const Value& stage : node.stage->feature_settings().items())
    if (const Value* rate = stage.find("sample_rate");
        rate != nullptr && stage.find("stage")->text() == kMel)
      own.set("sample_rate", *rate);
  Problems problems;
  known.read(own, out.name + ".", problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
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
        "{}: no node of it is a mel, which is what is compared; name a pipeline that has one",
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

Value echo_of(MelStageOptions options) {
  Schema schema;
  options.describe(schema);
  return schema.echo();
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

ParityOptions of_pipeline(const ParityQuestion& question) {
  const MelNode node = mel_node(question);
  const std::string own =
      node.options.preset.preset != nullptr ? std::string(node.options.preset.preset->name) : "";
  ParityOptions out;
  out.node = node.name;
  out.library = question.library;
  for (const ParityLibrary& l : parity_libraries())
    if (out.library.empty() && has_preset(l, own)) out.library = l.name;
  if (out.library.empty()) {
    std::vector<std::string> names;
    for (const ParityLibrary& l : parity_libraries()) names.push_back(l.name);
    throw RunError(fmt::format(
        "{}: {} has no preset, which would say which library is meant; give --reference, one of {}",
        question.pipeline, node.name, fmt::join(names, ", ")));
  }
  out.preset = &preset_of(question, out.library, own);
  out.mel = node.options.resolved();
  out.changed = differing(node, *out.preset);
  out.remark = node.options.preset_remark();
  return out;
}

}  // namespace

ParityOptions parity_options(const ParityQuestion& question) {
  return question.pipeline.empty() ? of_preset(question) : of_pipeline(question);
}

}  // namespace melflow
