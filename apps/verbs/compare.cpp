// melflow compare: are two files, or pipelines, of the same features?
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/feature_settings.h"
#include "apps/verbs/verbs.h"
#include "pipeline/problem.h"
#include "pipeline/text.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestSetting = 1000;  // [bytes]

struct CompareArguments {
  std::string a, b;
  PlanOverrides overrides;
  bool json = false;
};

std::string shown(const Json& value) { return excerpt(setting_text(value), kLongestSetting); }

// The settings of a whole stage on one line: "rate 16000, quality high".
std::string stage_text(const Json& settings) {
  std::string out;
  for (const auto& [key, value] : settings.items())
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

// What can change the last bits though the features are the same.
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

Json compare_json(const FeatureSettings& a, const FeatureSettings& b,
                  const std::vector<SettingDifference>& all,
                  const std::vector<std::string>& remarks) {
  Json list = Json::array();
  for (const SettingDifference& d : all) {
    Json one{{"setting", d.setting}};
    if (d.in_a) one["a"] = d.a;
    if (d.in_b) one["b"] = d.b;
    list.push_back(std::move(one));
  }
  return {{"equal", all.empty()},
          {"a", feature_settings_json(a)},
          {"b", feature_settings_json(b)},
          {"differences", list},
          {"notes", remarks}};
}

int compare(const CompareArguments& arguments) {
  std::set<std::string> asked;
  const FeatureSettings a = read_feature_settings(arguments.a, arguments.overrides, asked);
  const FeatureSettings b = read_feature_settings(arguments.b, arguments.overrides, asked);
  arguments.overrides.check_used(asked);
  const std::vector<SettingDifference> all = differences(a, b);
  const std::vector<std::string> remarks = notes(a, b);
  if (arguments.json) {
    put(stdout, json_text(compare_json(a, b, all, remarks)));
  } else {
    for (const SettingDifference& d : all) say(stdout, "{}\n", difference_text(d, a, b));
    if (all.empty())
      say(stdout, "equal: same features (fingerprint {})\n", a.fingerprint);
    else
      say(stdout, "different: {} (fingerprints {} and {})\n", plural(all.size(), "difference"),
          a.fingerprint, b.fingerprint);
    for (const std::string& remark : remarks) say(stdout, "note: {}\n", remark);
  }
  return all.empty() ? kDone : kRunFailed;
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
      "a file that `melflow run` wrote, or a pipeline: a YAML file, or the name of one that comes "
      "with melflow";
  verb.add_option("A", arguments->a, what)->required();
  verb.add_option("B", arguments->b, "what to compare it with, likewise")->required();
  arguments->overrides.add_to(verb);
  verb.add_flag("--json", arguments->json, "prints one JSON document");
  verb.footer(
      "Exit status: 0 the features are the same, 1 they differ, 2 one of the two cannot be "
      "read.\n\n"
      "Example:\n"
      "  melflow compare old.h5 new.h5\n"
      "  melflow compare features.h5 mine.yaml\n"
      "  melflow compare whisper mine.yaml --var RATE=16000");
  return [arguments] { return compare_or_say(*arguments); };
}

}  // namespace melflow
