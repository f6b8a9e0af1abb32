#include "config/trust.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>

#include "pipeline/base/secrets.h"

namespace melflow {
namespace {

struct Rule {
  Effect effect;
  const char* refusal;
};

constexpr Rule kRules[] = {
    {Effect::function,
     "this configuration would run the function, which is code chosen by the author of the file; "
     "run it with --trust"},
    {Effect::command,
     "this configuration would run the commands of its lists, which are code chosen by the author "
     "of the file; run it with --trust"},
    {Effect::plugin,
     "this configuration would load the plug-in, which is code chosen by the author of the file; "
     "give your own with --plugin FILE, or load it with --trust"},
    {Effect::model,
     "this configuration would run the model, which is chosen by the author of the file; run it "
     "with --trust"},
    {Effect::url,
     "this configuration would send requests to the server, which is chosen by the author of the "
     "file; run it with --trust"},
    {Effect::write,
     "is neither below the current folder nor below that of the job, and chosen by the author of "
     "the job; write elsewhere with -o FILE, or run it with --trust"},
    {Effect::variable,
     "a stored configuration gets no variables of the environment, which may be secret; give "
     "--var NAME=VALUE, or run it with --trust"},
    {Effect::preset,
     "this configuration would read the model's file, which is chosen by the author of the file; "
     "run it with --trust"},
};

// Options that have an effect, of any stage that has them.
struct EffectiveOption {
  const char* name;
  Effect effect;
  bool (*has_effect)(const std::string& value);
};

bool is_given(const std::string& value) { return !value.empty(); }

constexpr EffectiveOption kOptions[] = {
    {"call", Effect::function, is_given},
    {"commands", Effect::command, [](const std::string& value) { return value == "allow"; }},
    {"model", Effect::model, is_given},
    {"root", Effect::url, [](const std::string& value) { return is_url(value); }},
    // A model's file; names of front ends have neither capitals nor signs.
    {"preset", Effect::preset,
     [](const std::string& value) {
       std::error_code error;
       return value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != value.npos ||
              std::filesystem::exists(value, error);
     }},
    {"preset.file", Effect::preset, is_given},
};

// The value of an option, or of a key of a map, "preset.file".
const Value* value_at(const Value& options, std::string_view name) {
  const std::size_t dot = name.find('.');
  const Value* value = options.find(name.substr(0, dot));
  return value == nullptr || dot == name.npos ? value : value->find(name.substr(dot + 1));
}

// Whether the value is a choice of the option, which is meant whatever files there are.
bool is_choice(const StageInfo& stage, std::string_view option, const std::string& value) {
  const std::unique_ptr<StageConfig> config = stage.configure();
  for (const Field& field : config->schema().fields())
    if (field.name == option)
      return std::find(field.choices.begin(), field.choices.end(), value) != field.choices.end();
  return false;
}

const Rule& rule_of(Effect effect) {
  return *std::find_if(std::begin(kRules), std::end(kRules),
                       [effect](const Rule& rule) { return rule.effect == effect; });
}

}  // namespace

// The same for all effects.
bool Trust::allows(Effect /*effect*/) const { return !is_stored_ || is_given_; }

std::string Trust::refusal(Effect effect) { return rule_of(effect).refusal; }

std::vector<Demand> demands_of(const Value& node, const StageInfo& stage) {
  std::vector<Demand> out;
  const auto add = [&](const Value& options, const std::string& prefix) {
    for (const EffectiveOption& option : kOptions) {
      const Value* value = value_at(options, option.name);
      if (value == nullptr || !value->is_scalar() || !option.has_effect(value->text())) continue;
      if (option.effect != Effect::preset || !is_choice(stage, option.name, value->text()))
        out.push_back({option.effect, prefix + option.name, value->text(), value->mark()});
    }
  };
  add(node, "");
  // A node of onnx is stored as the call of a function, with the model as its argument.
  if (const Value* arguments = node.find("arguments")) add(*arguments, "arguments.");
  if (out.empty() && stage.runs_code)
    out.push_back({Effect::function, "stage", stage.name, node.mark()});
  return out;
}

}  // namespace melflow
