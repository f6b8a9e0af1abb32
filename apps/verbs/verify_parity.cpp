// melflow verify-parity: are our features the libraries' own?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/parity/check.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/shipped.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "config/overrides.h"
#include "pipeline/problem.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/features/mel_stage_options.h"
#include "stages/version.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFooter =
    R"(Rows are computed in single and in double precision (the option 'precision' of mel), and both are
compared. A value passes when
  |ours - theirs| <= atol + rtol |theirs| + own_error
where atol and rtol are the tolerance of the library's own tests, or 1e-4 where it tests no values,
and own_error is how far the library itself is from its definition. For linear values atol is 0.
A value may also differ by as much as an error of 1e-5 in the bands beside it makes, and a level by
1e-4, because the vectors leave out own errors smaller than that. In single precision it may differ
by as much as an error of 1e-6 of the frame's largest amplitude makes.
The column 'max error' shows the error of the value that is nearest to its limit, less own_error.
With --reference torchaudio, speechbrain and ast own_error is measured: what each value is off from
the library's own code in double precision; then the allowances for own errors do not count.
With --reference the mean and the standard deviation of each column over all rows are compared, too.

Exit status: 0 all values pass, 1 one does not. docs/parity.md has more.

Example:
  melflow verify-parity
  melflow verify-parity --preset whisper --preset kaldi --all
  melflow verify-parity --reference librosa --python venv/bin/python speech.wav
  melflow verify-parity --reference librosa --set mel.sample_rate=48000 speech.wav)";

struct ParityArguments {
  std::vector<std::string> presets;
  std::string vectors;
  std::string library, python = "python3";
  std::vector<std::string> files;
  PlanOverrides overrides;
  bool all = false, json = false;
};

void check_names(const std::vector<std::string>& wanted, const ParityVectors& vectors) {
  std::vector<std::string> names;
  for (const auto& [name, tolerance] : vectors.presets) names.push_back(name);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw RunError(
          fmt::format("there are no golden vectors of a preset '{}'{}; there are some of {}", name,
                      did_you_mean(name, names), fmt::join(names, ", ")));
}

ParityVectors load_vectors(const ParityArguments& arguments) {
  if (!arguments.vectors.empty()) return read_parity_vectors(arguments.vectors);
  return read_parity_vectors(
      shipped_file("parity/presets.json", "tests/golden/presets.json").string());
}

int finish(const ParityArguments& arguments, const std::vector<ParityResult>& results,
           const Json& head, const char* what, const std::vector<ParityResult>& lines,
           const ParityVectors& vectors) {
  const bool passed =
      std::all_of(results.begin(), results.end(), [](const auto& r) { return r.passed; });
  if (arguments.json) {
    Json out{{"melflow_version", kVersion},
             {"backend", "cpu"},
             {"instruction_set", MelKernel::instruction_set()},
             {"passed", passed}};
    out.update(head);
    put(stdout, json_text(out));
  } else {
    say(stdout, "melflow {} (cpu, {})\n\n", kVersion, MelKernel::instruction_set());
    put(stdout, parity_text(what, lines, results, vectors));
  }
  return passed ? kDone : kRunFailed;
}

int verify_vectors(const ParityArguments& arguments) {
  ParityVectors vectors = load_vectors(arguments);
  vectors.presets.emplace_back(kDeltas, ParityTolerance{});
  check_names(arguments.presets, vectors);
  const auto wanted = [&](const std::string& preset) {
    const auto& names = arguments.presets;
    return names.empty() || std::find(names.begin(), names.end(), preset) != names.end();
  };
  std::vector<ParityResult> cases;
  for (const ParityCase& one : vectors.cases)
    if (wanted(one.preset)) cases.push_back(check_case(one, vectors.tolerance(one.preset)));
  for (const ParityDelta& one : vectors.deltas)
    if (wanted(kDeltas)) cases.push_back(check_delta(one, vectors.tolerance(kDeltas)));
  const std::vector<ParityResult> presets = by_preset(cases);
  const Json head{{"presets", parity_json(presets, vectors)},
                  {"cases", parity_json(cases, vectors)}};
  return arguments.all ? finish(arguments, cases, head, "case", cases, vectors)
                       : finish(arguments, cases, head, "preset", presets, vectors);
}

// The preset of the library that is meant. Throws RunError when it is none of the library's.
const MelPreset& preset_of(const ParityArguments& arguments) {
  for (const ParityLibrary& l : parity_libraries()) {
    if (l.name != arguments.library) continue;
    if (arguments.presets.size() > 1)
      throw RunError(
          "--reference compares with one preset, but several are given; leave only one --preset");
    const std::string name = arguments.presets.empty() ? l.presets.front() : arguments.presets[0];
    if (std::find(l.presets.begin(), l.presets.end(), name) == l.presets.end())
      throw RunError(fmt::format("--preset {}: {} has no such preset; those that it has are {}",
                                 name, l.name, fmt::join(l.presets, ", ")));
    return *find_preset(name);
  }
  throw RunError(fmt::format("--reference {}: this library cannot be asked", arguments.library));
}

struct AskedOptions {
  MelOptions mel;
  std::vector<std::string> changed;  // by --set
  std::string remark;
};

// Those of the preset, with what --set says of a node mel that has it. Throws ConfigError.
AskedOptions options_of(const ParityArguments& arguments, const MelPreset& preset) {
  Value mel = Value::map({}), graph = Value::map({}), root = Value::map({});
  mel.set("preset", Value::scalar(std::string(preset.name)));
  graph.set("mel", std::move(mel));
  root.set("graph", std::move(graph));
  Problems problems;
  apply_overrides(root, arguments.overrides.assignments(), problems);
  if (root.entries().size() > 1)
    problems.add({}, "--set: only options of mel can be set here, as in mel.n_mels=64");
  const Value& node = *root.find("graph")->find("mel");
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  schema.read(node, "mel.", problems);
  AskedOptions out{stage.resolved(), {}, stage.preset_remark()};
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

int verify_files(const ParityArguments& arguments) {
  const MelPreset& preset = preset_of(arguments);
  const AskedOptions options = options_of(arguments, preset);
  const ParityVectors vectors = load_vectors(arguments);
  const int rate = options.mel.sample_rate;
  const auto recordings = read_recordings(arguments.files, rate);
  const ReferenceAnswer answer =
      ask_reference(arguments.python, arguments.library, options.mel, options.changed, recordings);
  if (!arguments.json && !options.remark.empty()) say(stdout, "{}\n", options.remark);
  const std::string name(preset.name);
  RecordingCheck check(name, options.mel, answer, vectors.tolerance(name));
  std::vector<ParityResult> results;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    results.push_back(check.check(recordings[i], answer.rows[i]));
    if (!arguments.json && recordings[i].file_rate > 0 && recordings[i].file_rate != rate)
      say(stdout, "{}: resampled from {} to {} Hz, for both\n", recordings[i].path,
          recordings[i].file_rate, rate);
  }
  const auto statistics = check.statistics();
  const std::vector<ParityResult> of_rows(statistics.begin(), statistics.end());
  const Json head{{"reference", arguments.library},
                  {"preset", preset.name},
                  {"changed", options.changed},
                  {"sample_rate", rate},
                  {"function", answer.source.function},
                  {"files", parity_json(results, vectors)},
                  {"statistics", parity_json(of_rows, vectors)}};
  results.insert(results.end(), of_rows.begin(), of_rows.end());
  return finish(arguments, results, head, "file", results, vectors);
}

CLI::Validator is_one_of(const std::vector<std::string>& names) {
  return {[names](const std::string& text) {
            return std::find(names.begin(), names.end(), text) != names.end()
                       ? std::string()
                       : fmt::format("'{}' is none of {}{}", text, fmt::join(names, ", "),
                                     did_you_mean(text, names));
          },
          ""};
}

}  // namespace

Action add_verify_parity(CLI::App& verb) {
  auto arguments = std::make_shared<ParityArguments>();
  verb.add_option("--preset", arguments->presets,
                  "compares this preset only; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb.add_flag("--all", arguments->all, "prints a line for each case instead of each preset");
  verb.add_flag("--json", arguments->json, "prints one JSON document");
  verb.add_option("--vectors", arguments->vectors,
                  "takes the golden vectors from this file instead of melflow's own")
      ->type_name("PATH");
  std::vector<std::string> libraries;
  for (const ParityLibrary& l : parity_libraries()) libraries.push_back(l.name);
  CLI::Option* reference =
      verb.add_option("--reference", arguments->library,
                      "compares with what this Python library makes of FILEs: " +
                          fmt::format("{}", fmt::join(libraries, ", ")))
          ->type_name("LIBRARY")
          ->check(is_one_of(libraries));
  CLI::Option* files =
      verb.add_option("FILE", arguments->files, "the recordings for --reference")->needs(reference);
  reference->needs(files);
  verb.add_option("--python", arguments->python,
                  "the Python interpreter that has the library; by default python3")
      ->type_name("PATH")
      ->needs(reference);
  arguments->overrides.add_sets_to(verb);
  verb.get_option("--set")->needs(reference)->description(
      "gives an option of the preset another value, for melflow and for the library: "
      "mel.sample_rate=8000");
  verb.footer(kFooter);
  return [arguments] {
    return arguments->library.empty() ? verify_vectors(*arguments) : verify_files(*arguments);
  };
}

}  // namespace melflow
