// melflow verify-parity: compares our features with the libraries', by the Python package
// (melflow/parity.py), in which the program starts itself.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/start_python.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/parity_options.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/features/mel_front.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFooter =
    R"(Needs the Python package melflow.

Rows are computed in single and in double precision (the option 'precision' of mel), and both are
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
  melflow verify-parity mine.yaml speech.wav --reference librosa --var DATA=clips
  melflow verify-parity --reference transformers whisper-small speech.wav)";

struct ParityArguments {
  ParityQuestion question;
  std::string vectors;
  std::string python;              ///< "": that in which this runs
  std::vector<std::string> files;  ///< the first is the pipeline, if one is given
  bool all = false, json = false;
};

bool has_pipeline(const ParityArguments& arguments) {
  std::error_code error;
  return !arguments.files.empty() && is_pipeline_name(arguments.files.front()) &&
         !std::filesystem::is_directory(arguments.files.front(), error);
}

// Throws CLI::RequiresError for arguments that need others.
void check_arguments(const ParityArguments& arguments) {
  const ParityQuestion& question = arguments.question;
  if (question.library == kTransformersLibrary) {
    if (arguments.files.empty())
      throw CLI::RequiresError("--reference transformers",
                               "the folder of a model as the first FILE");
    return;
  }
  if (has_pipeline(arguments)) return;
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
  const bool has_model = question.library == kTransformersLibrary;
  if (has_model || has_pipeline(arguments)) {
    (has_model ? question.model : question.pipeline) = files.front();
    files.erase(files.begin());
  }
  check_recordings(files);
  std::vector<std::string> in_double;  // presets
  for (const ParityLibrary& l : parity_libraries())
    if (l.is_double) in_double.insert(in_double.end(), l.presets.begin(), l.presets.end());
  Json words{{"presets", question.presets}, {"vectors", arguments.vectors},
             {"all", arguments.all},        {"json", arguments.json},
             {"python", arguments.python},  {"files", files},
             {"in_double", in_double},      {"instruction_set", chosen_instruction_set()}};
  if (!question.pipeline.empty() || !question.library.empty())
    words["asked"] = parity_options(question);
  PythonHost* host = python_host();
  if (host == nullptr) throw NeedsPython{"melflow verify-parity"};
  clean_python_path();  // for the Python that has the library
  const PythonVerb done = host->run_verb("parity", json_text(words));
  put(stdout, done.printed);
  if (!done.complaint.empty()) complain(done.complaint);
  return done.status;
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
  libraries.emplace_back(kTransformersLibrary);
  verb.add_option("--reference", question.library,
                  fmt::format("compares with what this Python library makes of FILEs: {}. With "
                              "transformers the first FILE is a model's folder",
                              fmt::join(libraries, ", ")))
      ->type_name("LIBRARY")
      ->check(is_one_of(libraries));
  verb.add_option(
      "FILE", arguments->files,
      "recordings to compare. The first may be a pipeline instead: its mel settings are "
      "compared then, with the library of its preset unless --reference names one. A "
      "pipeline or model without recordings is compared on test signals");
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
      "gives an option of the preset, of the pipeline, or a key of the model another value, for "
      "melflow and for the library: mel.sample_rate=8000, model.dither=0");
  verb.footer(kFooter);
  verb.final_callback([arguments] { check_arguments(*arguments); });
  return [arguments] { return verify_parity(*arguments); };
}

}  // namespace melflow
