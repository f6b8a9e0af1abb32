// melflow compare: tells whether two files or pipelines have the same features.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/feature_settings.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/model_files/model_file.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestSetting = 1000;  // [bytes]

struct CompareArguments {
  std::string a, b;
  std::string output;  ///< "": all outputs, matched by name
  PlanOverrides overrides;
  std::vector<std::string> sets_of_b;
  bool json = false, decibels = false;
};

std::string shown(const Json& value) {
  if (value.is_null()) return "not set";
  const std::string text = excerpt(setting_text(value), kLongestSetting);
  return text.empty() ? "not set" : text;
}

// Formats the settings of a whole stage on one line: "rate 16000, quality high".
std::string stage_text(const Json& settings) {
  std::string out;
  for (const auto& [key, value] : settings.items())
    if (!setting_text(value).empty())
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key, shown(value));
  return out.empty() ? "no settings" : out;
}

std::string difference_text(const SettingDifference& d, const FeatureSettings& a,
                            const FeatureSettings& b) {
  if (d.in_a && d.in_b)
    return fmt::format("{}: {} in {}, {} in {}", d.setting, shown(d.a), a.path, shown(d.b), b.path);
  const Json& value = d.in_a ? d.a : d.b;
  const std::string& path = d.in_a ? a.path : b.path;
  if (value.is_object())
    return fmt::format("{}: only in {} ({})", d.setting, path, stage_text(value));
  return fmt::format("{}: {} in {}, not a setting in {}", d.setting, shown(value), path,
                     d.in_a ? b.path : a.path);
}

// Lists settings that can change the last bits of otherwise equal features.
std::vector<std::string> notes(const FeatureSettings& a, const FeatureSettings& b) {
  std::vector<std::string> out;
  const auto known = [](const std::string& text) {
    return text.empty() ? "not known before a run" : one_line(text);
  };
  const auto note = [&](const char* name, const std::string& ours, const std::string& theirs) {
    if (ours != theirs)
      out.push_back(fmt::format("{}: {} in {}, {} in {}: the last bits of values may differ", name,
                                known(ours), a.path, known(theirs), b.path));
  };
  note("melflow_version", a.melflow_version, b.melflow_version);
  note("backend", a.backend, b.backend);
  note("instruction_set", a.instruction_set, b.instruction_set);
  return out;
}

// Two outputs to compare, or one that the other pipeline lacks (null).
struct Pair {
  std::string name;  // "" where there is only one
  const FeatureSettings *a = nullptr, *b = nullptr;

  [[nodiscard]] bool is_whole() const { return a != nullptr && b != nullptr; }
};

using Outputs = std::vector<FeatureSettings>;

// The name is ignored for a file of rows and for a pipeline with one output.
Pair pair_named(const std::string& name, const Outputs& a, const Outputs& b) {
  Pair out{"", find_output(a, name), find_output(b, name)};
  if (out.a == nullptr && out.b == nullptr) throw RunError(no_such_output(a, name));
  for (const auto& [side, all] : {std::pair{&out.a, &a}, std::pair{&out.b, &b}}) {
    if (*side == nullptr && !are_alike(*all)) throw RunError(no_such_output(*all, name));
    if (*side == nullptr) *side = &all->front();
  }
  return out;
}

bool are_files(const Outputs& outputs) { return outputs.front().output.empty(); }

std::vector<Pair> pairs_of(const Outputs& a, const Outputs& b) {
  if (are_alike(a) && are_alike(b)) return {{"", &a.front(), &b.front()}};
  // Compares a file with the sink of a pipeline that writes it.
  if (are_files(a) && !are_files(b))
    if (const FeatureSettings* o = find_written(b, a.front().path))
      return {{o->output, &a.front(), o}};
  if (are_files(b) && !are_files(a))
    if (const FeatureSettings* o = find_written(a, b.front().path))
      return {{o->output, o, &b.front()}};
  std::vector<Pair> out;
  bool have_one_in_common = false;
  for (const FeatureSettings& o : a) {
    out.push_back({o.output, &o, find_output(b, o.output)});
    have_one_in_common = have_one_in_common || out.back().is_whole();
  }
  if (!have_one_in_common) throw RunError(name_an_output(are_alike(a) ? b : a));
  for (const FeatureSettings& o : b)
    if (find_output(a, o.output) == nullptr) out.push_back({o.output, nullptr, &o});
  return out;
}

Json pair_json(const Pair& pair) {
  if (!pair.is_whole()) return {{"equal", false}, {"only_in", pair.a != nullptr ? "a" : "b"}};
  Json list = Json::array();
  for (const SettingDifference& d : differences(*pair.a, *pair.b)) {
    Json one{{"setting", d.setting}};
    if (d.in_a) one["a"] = d.a;
    if (d.in_b) one["b"] = d.b;
    list.push_back(std::move(one));
  }
  return {{"equal", list.empty()},
          {"a", feature_settings_json(*pair.a)},
          {"b", feature_settings_json(*pair.b)},
          {"differences", list},
          {"notes", notes(*pair.a, *pair.b)}};
}

Json compare_json(const std::vector<Pair>& pairs) {
  if (pairs.size() == 1 && pairs.front().name.empty()) return pair_json(pairs.front());
  bool is_equal = true;
  Json list = Json::array();
  for (const Pair& pair : pairs) {
    list.push_back({{"output", pair.name}});
    list.back().update(pair_json(pair));
    is_equal = is_equal && list.back()["equal"];
  }
  return {{"equal", is_equal}, {"outputs", list}};
}

// Prints the differences, one per line. Returns whether there are none.
bool say_pair(const Pair& pair) {
  const std::string name = pair.name.empty() ? "" : pair.name + ": ";
  if (!pair.is_whole()) {
    say(stdout, "{}only in {}\n", name, (pair.a != nullptr ? pair.a : pair.b)->path);
    return false;
  }
  const FeatureSettings &a = *pair.a, &b = *pair.b;
  const std::vector<SettingDifference> all = differences(a, b);
  for (const SettingDifference& d : all) say(stdout, "{}{}\n", name, difference_text(d, a, b));
  if (all.empty())
    say(stdout, "{}equal: same features (fingerprint {})\n", name, a.fingerprint);
  else
    say(stdout, "{}different: {} (fingerprints {} and {})\n", name,
        plural(all.size(), "difference"), a.fingerprint, b.fingerprint);
  for (const std::string& remark : notes(a, b)) say(stdout, "{}note: {}\n", name, remark);
  return all.empty();
}

// A side as Python computes its rows.
Json side(const std::string& path, const std::vector<std::string>& sets) {
  Json assigned = Json::object();
  for (const std::string& set : sets)
    assigned[set.substr(0, set.find('='))] = set.substr(std::min(set.find('=') + 1, set.size()));
  const std::string text = front_end_pipeline(path);
  if (text.empty() && !is_pipeline_name(path))
    throw RunError(path +
                   ": --decibels computes rows of signals, so it needs a front end or a "
                   "pipeline, and this is a file");
  return {{"path", text.empty() ? find_pipeline(path) : path},
          {"text", text},
          {"sample_rate", front_end_rate(path)},
          {"sets", assigned}};
}

void say_decibels(const CompareArguments& arguments, const std::vector<std::string>& sets_of_b) {
  const Json words{
      {"decibels", {side(arguments.a, arguments.overrides.sets), side(arguments.b, sets_of_b)}}};
  put(stdout, python_host()->run_verb("front_end_check", json_text(words)).printed + "\n");
}

int compare(const CompareArguments& arguments) {
  // Before anything is printed: the program starts itself anew.
  if (arguments.decibels && python_host() == nullptr)
    throw NeedsPython{"melflow compare --decibels"};
  for (const std::string& path : {arguments.a, arguments.b})
    if (const std::string text = shadowed_folder(Value::scalar(path)); !text.empty())
      say(stderr, "warning: {}\n", text);
  std::set<std::string> asked;
  const Outputs a = read_feature_settings(arguments.a, arguments.overrides, asked);
  PlanOverrides of_b = arguments.overrides;
  of_b.sets.insert(of_b.sets.end(), arguments.sets_of_b.begin(), arguments.sets_of_b.end());
  Outputs b = read_feature_settings(arguments.b, of_b, asked);
  arguments.overrides.check_used(asked);
  const std::vector<Pair> pairs =
      arguments.output.empty() ? pairs_of(a, b) : std::vector{pair_named(arguments.output, a, b)};
  if (arguments.json) {
    const Json document = compare_json(pairs);
    put(stdout, json_text(document));
    return document["equal"] ? kDone : kRunFailed;
  }
  if (arguments.a == arguments.b && !arguments.sets_of_b.empty())
    for (FeatureSettings& o : b) o.path += " with --set-b";
  bool is_equal = true;
  for (const Pair& pair : pairs) is_equal = say_pair(pair) && is_equal;
  if (arguments.decibels) say_decibels(arguments, of_b.sets);
  if (is_equal && !arguments.overrides.sets.empty() && arguments.sets_of_b.empty())
    say(stdout, "note: --set changed both; --set-b changes B alone\n");
  return is_equal ? kDone : kRunFailed;
}

int compare_or_say(const CompareArguments& arguments) {
  try {
    return compare(arguments);
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& e) {
    complain(e.what());
    return kUsage;
  }
}

}  // namespace

Action add_compare(CLI::App& verb) {
  auto arguments = std::make_shared<CompareArguments>();
  const std::string what =
      "a file that `melflow run` wrote; a pipeline: a YAML file, or the name of one that comes "
      "with melflow; a model's own file or folder (docs/model-files.md); or a preset";
  verb.add_option("A", arguments->a, what)->required();
  verb.add_option("B", arguments->b, "what to compare it with, as A")->required();
  verb.add_option(
          "--output", arguments->output,
          "which output to compare where a pipeline has several: the name of the node that writes "
          "it (default: outputs of the same name, or the output whose path is that of the file)")
      ->type_name("NAME");
  arguments->overrides.add_to(verb);
  verb.add_flag("--json", arguments->json, "prints one JSON document");
  verb.add_flag(
      "--decibels", arguments->decibels,
      "also computes rows of a voice, noise, silence and other signals made in place, and "
      "says by how much they differ; needs the Python package melflow");
  verb.get_option("--set")->description("overrides an option in both: mel.n_mels=64");
  verb.add_option("--set-b", arguments->sets_of_b, "overrides an option in B alone")
      ->type_name("NODE.OPTION=VALUE")
      ->allow_extra_args(false)
      ->check(*verb.get_option("--set")->get_validator(0));
  verb.footer(
      "It compares settings, not values: everything that can change a value, from the recording to "
      "the\nrow. `melflow verify-parity` compares values.\n\n"
      "Exit status: 0 the features are the same, 1 they differ, 2 one of the two cannot be read, "
      "or\n"
      "usage, 78 one is a pipeline that is wrong.\n\n"
      "Example:\n"
      "  melflow compare old.h5 new.h5\n"
      "  melflow compare features.h5 mine.yaml --output write\n"
      "  melflow compare whisper mine.yaml --var RATE=16000\n"
      "  melflow compare whisper-small/preprocessor_config.json whisper_large_v3 --decibels");
  return [arguments] { return compare_or_say(*arguments); };
}

}  // namespace melflow
