#include "stages/model_files/written_front_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "pipeline/base/text.h"
#include "stages/length.h"
#include "stages/model_files/model_file.h"

namespace melflow {
namespace {

using Node = ModelFrontEnd::Node;

constexpr const char* kOfNode[] = {"stage",    "from",       "concurrency",  "queue",
                                   "start_at", "on_failure", "max_failures", "preset"};

bool is_of_node(std::string_view key) {
  return std::find(std::begin(kOfNode), std::end(kOfNode), key) != std::end(kOfNode);
}

bool is_equal(const Value& length, const Value& other, int rate) {
  Length a, b;
  return OptionType<Length>::parse(length, a).empty() &&
         OptionType<Length>::parse(other, b).empty() && a.at(rate) == b.at(rate);
}

NodeSpec made(const NodeSpec& spec, const Node& node, bool is_main) {
  NodeSpec out{is_main ? spec.name : spec.name + "_" + node.stage, spec.mark,
               Value::map({}, spec.mark)};
  out.options.set("stage", Value::scalar(node.stage, spec.mark));
  if (!is_main) out.options.set("from", Value());
  return out;
}

}  // namespace

std::vector<NodeSpec> written_front_end(const NodeSpec& spec, std::string_view stage,
                                        WritingOut& writing) {
  const Value* preset = spec.options.find("preset");
  if (preset == nullptr) return {};
  if (spec.options.find("preset_of") == nullptr)  // else it is from a file
    if (const std::string text = shadowed_folder(*preset); !text.empty())
      writing.notes.push_back({preset->mark(), fmt::format("{}.preset: {}", spec.name, text)});
  if (!is_model_file(*preset)) return {};
  ModelFrontEnd of;
  try {
    of = read_model_file(*preset);
  } catch (const ConfigError& error) {
    for (const Problem& p : error.problems().sorted())
      writing.problems.add(
          p.mark.line > 0 ? p.mark : preset->mark(),
          p.mark.line > 0 ? p.message : fmt::format("{}.preset: {}", spec.name, p.message));
    return {};
  }
  const auto note = [&](const std::string& text) {
    writing.notes.push_back(
        {preset->mark(), fmt::format("{}.preset: {}: {}", spec.name, of.title, text)});
  };
  if (of.main().stage != stage) {
    writing.problems.add(
        preset->mark(),
        fmt::format("{}.preset: {} gives what the stage {} makes, not {}; write stage: {}{}",
                    spec.name, of.title, of.main().stage, stage, of.main().stage,
                    of.said.empty() ? "" : " (" + of.said.front() + ")"));
    return {};
  }
  for (const std::string& text : of.said) note(text);

  const auto windows =
      std::find_if(writing.before.begin(), writing.before.end(), [](const NodeSpec* n) {
        const Value* of_node = n->options.find("stage");
        const Value* length = n->options.find("length");
        return of_node != nullptr && of_node->text() == "segment" && length != nullptr;
      });
  const Value* window_length =
      windows == writing.before.end() ? nullptr : (*windows)->options.find("length");
  std::vector<Node> nodes = of.nodes;
  // Unlike a segment it comes behind normalize_samples, which would count its zeros.
  if (!of.window.name.empty() && window_length == nullptr)
    nodes.insert(std::find_if(nodes.begin(), nodes.end(),
                              [stage](const Node& n) { return n.stage == stage; }),
                 Node{"fit_samples", {of.window}});
  else if (!of.window.name.empty() && !is_equal(*window_length, of.window.value, of.sample_rate()))
    note(fmt::format("takes windows of {}, and those here have {}", of.window.value.text(),
                     window_length->text()));

  std::vector<NodeSpec> out;
  for (const Node& node : nodes) {
    if (node.stage == "segment" && window_length != nullptr) continue;
    const bool is_main = node.stage == stage;
    NodeSpec& n = out.emplace_back(made(spec, node, is_main));
    if (is_main)
      for (const Value::Entry& e : spec.options.entries())
        if (is_of_node(e.key) && e.key != "preset" && e.key != "stage")
          n.options.set(e.key, e.value);
    for (const ModelFrontEnd::Option& option : node.options)
      n.options.set(option.name, option.value);
    if (!is_main) continue;
    std::vector<std::string> changed;
    for (const Value::Entry& e : spec.options.entries()) {
      if (is_of_node(e.key)) continue;
      const Value* theirs = node.find(e.key);
      if (theirs == nullptr || to_json(*theirs) != to_json(e.value)) changed.push_back(e.key);
      n.options.set(e.key, e.value);
    }
    n.options.set("preset_of", Value::scalar(fmt::format("{}, {}{}{}", of.title, of.hash,
                                                         changed.empty() ? "" : ", with changed ",
                                                         fmt::join(changed, ", ")),
                                             preset->mark(), true));
  }
  return out;
}

}  // namespace melflow
