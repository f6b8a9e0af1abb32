// melflow inspect: describes the contents of a feature file.
#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/feature_settings.h"
#include "apps/verbs/inspect_text.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {
namespace {

struct InspectArguments {
  std::string file;
  std::string output;  ///< with `features`: which output, for a pipeline with several
  PlanOverrides overrides;
  bool json = false;
  bool files = false;
  bool failed = false, skipped = false, remarks = false;
  bool features = false;
};

int print_features(const InspectArguments& arguments) {
  std::set<std::string> asked;
  const std::vector<FeatureSettings> outputs =
      read_feature_settings(arguments.file, arguments.overrides, asked);
  arguments.overrides.check_used(asked);
  const FeatureSettings* settings = &outputs.front();
  if (!arguments.output.empty()) {
    settings = find_output(outputs, arguments.output);
    if (settings == nullptr) throw RunError(no_such_output(outputs, arguments.output));
  } else if (!are_alike(outputs)) {
    throw RunError(name_an_output(outputs));
  }
  if (arguments.json)
    put(stdout, json_text(feature_settings_json(*settings)));
  else
    put(stdout, feature_settings_text(*settings));
  return kDone;
}

int inspect(const InspectArguments& arguments) {
  if (arguments.features) return print_features(arguments);
  const FeatureFile file(arguments.file);
  if (arguments.failed || arguments.skipped) {
    put(stdout, listed_text(file, arguments.failed ? "failed" : "skipped"));
    return kDone;
  }
  if (arguments.remarks) {
    put(stdout, all_remarks_text(file));
    return kDone;
  }
  if (arguments.json)
    put(stdout, json_text(output_json(file, arguments.files)));
  else
    put(stdout, output_text(file, arguments.files));
  return kDone;
}

}  // namespace

Action add_inspect(CLI::App& verb) {
  auto arguments = std::make_shared<InspectArguments>();
  verb.add_option("FILE", arguments->file,
                  "a file that `melflow run` wrote; with --features also a pipeline: a YAML file, "
                  "or the name of one that comes with melflow")
      ->required();
  verb.add_flag("--json", arguments->json, "prints one JSON document");
  verb.add_flag("--files", arguments->files,
                "also lists every file with its rows, and every warning");
  verb.add_flag("--failed", arguments->failed,
                "prints only the files that failed, one per line: the path, a tab, the reason")
      ->excludes("--json")
      ->excludes("--files");
  verb.add_flag("--skipped", arguments->skipped, "likewise the files that were skipped")
      ->excludes("--json")
      ->excludes("--files")
      ->excludes("--failed");
  verb.add_flag(
          "--remarks", arguments->remarks,
          "prints only the files that failed, were skipped, or are ok with a warning (such as "
          "a damaged recording), one per line: the path, a tab, what became of it, a tab, "
          "the reason")
      ->excludes("--json")
      ->excludes("--files")
      ->excludes("--failed")
      ->excludes("--skipped");
  CLI::Option* features = verb.add_flag(
      "--features", arguments->features,
      "prints only the settings that can change a value of the features, one per line");
  verb.add_option(
          "--output", arguments->output,
          "with --features, for a pipeline with several outputs: the node that writes the one "
          "to show")
      ->type_name("NAME");
  arguments->overrides.add_to(verb);
  for (const char* name : {"--output", "--set", "--var"}) verb.get_option(name)->needs(features);
  verb.footer(
      "Example:\n"
      "  melflow inspect features.h5 --files\n"
      "  melflow inspect features.h5 --failed | cut -f1\n"
      "  melflow inspect features.h5 --skipped\n"
      "  melflow inspect features.h5 --remarks\n"
      "  melflow inspect features.h5 --features > features.txt");
  return [arguments] { return inspect(*arguments); };
}

}  // namespace melflow
