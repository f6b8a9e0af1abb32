// melflow verify-parity: compares our features with the libraries'.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_codes.h"
#include "apps/parity/check.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/shipped.h"
#include "apps/start_python.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/parity_options.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/features/mel/mel_kernel.h"
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
On top of that a value may differ by the effect of an error of 1e-5 in the neighbouring bands, and a
level by 1e-4, because the vectors omit own errors smaller than that; in single precision, by the
effect of an error of 1e-6 of the frame's largest amplitude.
The column 'largest' shows the largest difference |ours - theirs| of all values; 'nearest' is the
difference, less own_error, of the value that comes nearest to its limit, and 'limit' is that limit.
With --reference torchaudio, speechbrain and ast own_error is measured, by running the library's own
code in double precision; then the allowances for own errors do not count.

Exit status: 0 all values pass, 1 one does not. docs/parity.md has more.

Example:
  melflow verify-parity
  melflow verify-parity --preset whisper --preset kaldi --all
  melflow verify-parity --reference librosa --python venv/bin/python speech.wav
  melflow verify-parity --reference librosa --set mel.sample_rate=48000 speech.wav
  melflow verify-parity mine.yaml
  melflow verify-parity mine.yaml speech.wav --reference librosa --var DATA=clips)";

struct ParityArguments {
  ParityQuestion question;
  std::string vectors;
  std::string python;              ///< "": own_python()
  std::vector<std::string> files;  ///< the first is the pipeline, if one is given
  bool all = false, json = false;
};

void check_names(const std::vector<std::string>& wanted, const ParityVectors& vectors) {
  std::vector<std::string> names;
  for (const auto& [name, tolerance] : vectors.presets) names.push_back(name);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw RunError(
          fmt::format("there are no golden vectors of a preset '{}'{}; there are vectors of {}",
                      name, did_you_mean(name, names), fmt::join(names, ", ")));
}

ParityVectors load_vectors(const ParityArguments& arguments) {
  if (!arguments.vectors.empty()) return read_parity_vectors(arguments.vectors);
  return read_parity_vectors(
      shipped_file("parity/presets.json", "tests/golden/presets.json").string());
}

int finish(const ParityArguments& arguments, const std::vector<ParityResult>& results,
           const Json& head, const char* what, const std::vector<ParityResult>& lines,
           const ParityVectors& vectors) {
  const bool is_compared = std::any_of(results.begin(), results.end(),
                                       [](const auto& r) { return r.left_out < r.cases; });
  const bool passed = is_compared && std::all_of(results.begin(), results.end(),
                                                 [](const auto& r) { return r.passed; });
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
  if (!is_compared) complain("nothing was compared, so nothing is proven; the verdicts say why");
  return passed ? kDone : kRunFailed;
}

int verify_vectors(const ParityArguments& arguments) {
  ParityVectors vectors = load_vectors(arguments);
  vectors.presets.emplace_back(kDeltas, ParityTolerance{});
  check_names(arguments.question.presets, vectors);
  const auto wanted = [&](const std::string& preset) {
    const auto& names = arguments.question.presets;
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

// Returns the input for both sides: the files or, if there are none, the test signals.
std::vector<ParityRecording> recordings_of(const std::vector<std::string>& files, int rate) {
  return files.empty() ? signal_recordings(rate) : read_recordings(files, rate);
}

int verify_files(const ParityArguments& arguments, const ParityQuestion& question,
                 const std::vector<std::string>& files) {
  const ParityOptions options = parity_options(question);
  const ParityVectors vectors = load_vectors(arguments);
  const int rate = options.mel.sample_rate;
  const auto recordings = recordings_of(files, rate);
  const ReferenceAnswer answer =
      ask_reference(arguments.python.empty() ? own_python() : arguments.python, options.library,
                    options.mel, options.changed, recordings);
  if (!arguments.json && !options.node.empty())
    say(stdout, "{} of {}, beside {}{}{}\n", options.node, question.pipeline, options.library,
        options.changed.empty() ? "" : "; other than in its preset: ",
        fmt::format("{}", fmt::join(options.changed, ", ")));
  if (!arguments.json && !options.remark.empty()) say(stdout, "{}\n", options.remark);
  if (!arguments.json) say(stdout, "the library's calls: {}\n", answer.source.function);
  const std::string name(options.preset->name);
  std::vector<ParityResult> results;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    results.push_back(check_recording(name, options.mel, vectors.tolerance(name), recordings[i],
                                      answer.source, answer.rows[i]));
    if (!arguments.json && recordings[i].file_rate > 0 && recordings[i].file_rate != rate)
      say(stdout, "{}: resampled from {} to {} Hz, for both\n", recordings[i].path,
          recordings[i].file_rate, rate);
  }
  Json head{{"reference", options.library}};
  if (!options.node.empty()) head.update({{"pipeline", question.pipeline}, {"node", options.node}});
  head.update({{"preset", options.preset->name},
               {"changed", options.changed},
               {"sample_rate", rate},
               {"function", answer.source.function},
               {"files", parity_json(results, vectors)}});
  return finish(arguments, results, head, files.empty() ? "signal" : "file", results, vectors);
}

bool has_pipeline(const ParityArguments& arguments) {
  std::error_code error;
  return !arguments.files.empty() && is_pipeline_name(arguments.files.front()) &&
         !std::filesystem::is_directory(arguments.files.front(), error);
}

// Throws CLI::RequiresError for arguments that need others.
void check_arguments(const ParityArguments& arguments) {
  if (has_pipeline(arguments)) return;
  const ParityQuestion& question = arguments.question;
  constexpr const char* kPipeline = "a pipeline as the first FILE";
  constexpr const char* kReference = "--reference, or a pipeline as the first FILE";
  const bool has_reference = !question.library.empty();
  const std::tuple<bool, const char*, const char*> rows[] = {
      {!question.node.empty(), "--node", kPipeline},
      {!question.overrides.vars.empty(), "--var", kPipeline},
      {!has_reference && !arguments.files.empty(), "FILE", kReference},
      {!has_reference && !question.overrides.sets.empty(), "--set", kReference},
      {!has_reference && !arguments.python.empty(), "--python", kReference},
      {has_reference && arguments.files.empty(), "--reference", "FILE"}};
  for (const auto& [is_wrong, option, what] : rows)
    if (is_wrong) throw CLI::RequiresError(option, what);
}

// Throws RunError for a path that is no recording: a folder, an output, a missing file.
void check_recordings(const std::vector<std::string>& files) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!files.empty() && std::none_of(files.begin(), files.end(), [&](const std::string& file) {
        return fs::exists(file, error);
      }))
    throw RunError(fmt::format("{}: {}; name a recording", excerpt(files.front()),
                               no_such_file(files.front(), {".wav", ".flac", ".ogg", ".mp3"})));
  for (const std::string& file : files) {
    if (fs::is_directory(file, error))
      throw RunError(fmt::format(
          "{0}: this is a folder; name the recordings in it, such as {0}/*.wav", excerpt(file)));
    const std::string ending = fs::path(file).extension().string();
    if (ending == ".h5" || ending == ".hdf5" || ending == ".npy")
      throw RunError(
          fmt::format("{}: holds rows, but this compares recordings; name the recordings, after "
                      "the pipeline that made the rows",
                      excerpt(file)));
  }
}

int verify_parity(const ParityArguments& arguments) {
  ParityQuestion question = arguments.question;
  std::vector<std::string> files = arguments.files;
  if (has_pipeline(arguments)) {
    question.pipeline = files.front();
    files.erase(files.begin());
  }
  check_recordings(files);
  return question.pipeline.empty() && question.library.empty()
             ? verify_vectors(arguments)
             : verify_files(arguments, question, files);
}

}  // namespace

Action add_verify_parity(CLI::App& verb) {
  auto arguments = std::make_shared<ParityArguments>();
  ParityQuestion& question = arguments->question;
  verb.add_option("--preset", question.presets,
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
  verb.add_option("--reference", question.library,
                  "compares with what this Python library makes of FILEs: " +
                      fmt::format("{}", fmt::join(libraries, ", ")))
      ->type_name("LIBRARY")
      ->check(is_one_of(libraries));
  verb.add_option(
      "FILE", arguments->files,
      "recordings to compare. The first may be a pipeline instead: its mel settings are "
      "compared then, with the library of its preset unless --reference names one. A "
      "pipeline without recordings is compared on test signals");
  verb.add_option("--node", question.node,
                  "which mel node of the pipeline, where its settings differ from another's")
      ->type_name("NAME");
  verb.add_option(
          "--python", arguments->python,
          "the Python interpreter that has the library; by default what MELFLOW_PYTHON names, that "
          "of melflow's package, or python3")
      ->type_name("PATH");
  question.overrides.add_to(verb);
  verb.get_option("--set")->description(
      "gives an option of the preset, or of the pipeline, another value, for melflow and for the "
      "library: mel.sample_rate=8000");
  verb.footer(kFooter);
  verb.final_callback([arguments] { check_arguments(*arguments); });
  return [arguments] { return verify_parity(*arguments); };
}

}  // namespace melflow
