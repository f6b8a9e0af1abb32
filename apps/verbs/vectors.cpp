// melflow vectors: cases to test a front end in another language, as JSON, by the Python package
// (melflow/front_end_check.py), in which the program starts itself.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/verbs.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

struct VectorsArguments {
  std::string preset, sample_rate;
  std::vector<std::string> options;
};

int print_vectors(const VectorsArguments& a) {
  PythonHost* host = python_host();
  if (host == nullptr) throw NeedsPython{"melflow vectors"};
  const nlohmann::ordered_json words{
      {"preset", a.preset}, {"sample_rate", a.sample_rate}, {"options", a.options}};
  say(stdout, "{}\n", host->run_verb("front_end_check", json_text(words)).printed);
  return kDone;
}

}  // namespace

Action add_vectors(CLI::App& verb) {
  auto arguments = std::make_shared<VectorsArguments>();
  verb.add_option("--preset", arguments->preset, "the preset of mel, such as whisper")
      ->type_name("NAME");
  verb.add_option("--sample-rate", arguments->sample_rate,
                  "of the samples (default: that of the preset)")
      ->type_name("HZ");
  verb.add_option("--set", arguments->options, "an option of mel; several may be given")
      ->type_name("OPTION=VALUE");
  verb.footer(
      "Needs the Python package melflow. Prints one JSON object: all options of the front end "
      "resolved,\nint16 samples, and 20 cases of a number of samples with their rows.\n\n"
      "Example:\n"
      "  melflow vectors --preset whisper > whisper.json\n"
      "  melflow vectors --preset kaldi --set n_mels=80 > fbank80.json");
  return [arguments] { return print_vectors(*arguments); };
}

}  // namespace melflow
