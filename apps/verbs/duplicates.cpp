// melflow duplicates: which recordings of outputs of the stage fingerprint sound alike.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/check/findings.h"
#include "apps/duplicates/document.h"
#include "apps/duplicates/groups.h"
#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/report/verdicts_text.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "config/expectations.h"
#include "stages/corpus/group_table.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {
namespace {

struct DuplicatesArguments {
  std::vector<std::string> outputs, against;
  DuplicateOptions options;
  std::size_t memory = 512;  // [MiB]
  std::string across, csv, json;
  bool quiet = false;
};

int duplicates(const DuplicatesArguments& arguments) {
  std::optional<CountBound> bound;
  if (!arguments.across.empty()) bound = count_bound("--across-splits", arguments.across);
  for (const std::string& one : arguments.against)
    for (const std::string& other : arguments.outputs)
      if (std::error_code error; std::filesystem::equivalent(one, other, error))
        throw UsageError(fmt::format(
            "--against {}: is compared with itself; without --against its recordings are compared "
            "with each other",
            one));
  std::vector<std::string> inputs = arguments.outputs;
  inputs.insert(inputs.end(), arguments.against.begin(), arguments.against.end());
  std::optional<WrittenFile> csv, json;
  if (!arguments.csv.empty()) csv.emplace(arguments.csv, kGroupTable, inputs);
  if (!arguments.json.empty() && arguments.json != "-")
    json.emplace(arguments.json, "\"melflow_version\"", inputs);
  std::vector<std::unique_ptr<const FeatureFile>> files;
  const auto opened = [&](const std::vector<std::string>& paths) {
    std::vector<const FeatureFile*> out;
    for (const std::string& path : paths)
      out.push_back(files.emplace_back(std::make_unique<FeatureFile>(path)).get());
    return out;
  };
  const std::vector<const FeatureFile*> outputs = opened(arguments.outputs),
                                        against = opened(arguments.against);
  DuplicateOptions options = arguments.options;
  options.memory = arguments.memory << 20;
  const Duplicates found = find_duplicates(outputs, against, options);
  std::vector<Verdict> judged;
  if (bound) judged.push_back(verdict_on_duplicates(*bound, found));
  if (csv) csv->write(duplicates_csv(found));
  if (!arguments.json.empty()) {
    nlohmann::ordered_json document = duplicates_json(found);
    document["expected"] = verdicts_json(judged);
    if (json)
      json->write(json_text(document));
    else
      put(stdout, json_text(document));
  }
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  if (!arguments.quiet) put(out, duplicates_text(found));
  put(out, verdicts_text(judged));
  if (judged.empty()) return kDone;
  if (!judged.front().is_met) return kNotAsExpected;
  if (found.failed.empty()) return kDone;
  complain(
      fmt::format("{} failed in the run that wrote fingerprints, such as {}, and {} not compared",
                  plural(found.failed.size(), "recording"), found.failed.front()->path,
                  found.failed.size() == 1 ? "was" : "were"));
  return kSomeFailed;
}

}  // namespace

Action add_duplicates(CLI::App& verb) {
  auto arguments = std::make_shared<DuplicatesArguments>();
  DuplicateOptions& options = arguments->options;
  verb.add_option("OUTPUT", arguments->outputs,
                  "outputs with rows of the stage fingerprint; their recordings are compared with "
                  "each other")
      ->required();
  verb.add_option("--against", arguments->against,
                  "another such output, with which these recordings are compared, too; its own are "
                  "not compared with each other")
      ->type_name("OUTPUT")
      ->allow_extra_args(false);
  add_time(verb, "--least", options.least,
           "how long a stretch must be that two recordings share; default: 2s");
  verb.add_option("--share", options.share,
                  "how much of the shorter recording the stretch must be for the two to form a "
                  "group, 0 to 1; with less the pair is listed alone")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--common", options.common,
                  "what is in more recordings than this is no evidence: jingles, beeps, room tone; "
                  "default: 100, or a thousandth of all if that is more")
      ->check(is_integer(2, 1'000'000));
  verb.add_option("--with", options.with,
                  "recordings with the same text in this column of their list are of one group, "
                  "too, so that splits keep both apart")
      ->type_name("COLUMN");
  verb.add_option("--across-splits", arguments->across,
                  "how many recordings may sound like one of another split, or of --against: '<= "
                  "0', '< 0.1%'; if more, the exit status is 4")
      ->type_name("BOUND");
  verb.add_option(
          "--csv", arguments->csv,
          "writes a table with a line for every recording and its group, which is a list for "
          "file_list (manifest, split_group: group)")
      ->type_name("FILE.csv");
  verb.add_flag("--json{-}", arguments->json,
                "prints one JSON document on stdout and everything else on stderr; --json=FILE "
                "writes it to FILE");
  verb.add_option("--memory", arguments->memory,
                  "MiB for words and votes; more are kept in files in TMPDIR")
      ->capture_default_str()
      ->check(is_integer(16, 1'048'576));
  verb.add_flag("-q,--quiet", arguments->quiet, "prints only warnings and errors");
  verb.footer(
      "docs/duplicates.md has the pipeline that writes fingerprints, and what is found how well.\n"
      "Exit status: 0; 4 more recordings are across splits than --across-splits allows; 3 no more "
      "are, but some failed when fingerprints were written.\n"
      "\n"
      "Example:\n"
      "  melflow duplicates prints.h5 --csv groups.csv\n"
      "  melflow duplicates prints.h5 --across-splits '<= 0' --json\n"
      "  melflow duplicates new.h5 --against benchmark.h5");
  return [arguments] { return duplicates(*arguments); };
}

}  // namespace melflow
