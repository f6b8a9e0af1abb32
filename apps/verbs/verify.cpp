// melflow verify: checks the rows of an output against their hashes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/output_check.h"
#include "apps/verbs/output_corpus.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/recompute.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/output/earlier_rows.h"
#include "stages/output/formats/feature_file.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 20;

struct VerifyArguments {
  std::string file;
  bool json = false;
  std::optional<CountOrShare> recompute;
  std::uint64_t seed = 0;
  StoredOverrides stored;
};

template <class Files, class NameOf>
void list_some(std::string& out, const Files& files, const NameOf& name) {
  for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i) out += "\n  " + name(files[i]);
  if (files.size() > kShown)
    out += fmt::format("\n  and {} more (--json lists them all)", files.size() - kShown);
}

// Advises repair only if it would not refuse. If the plan cannot be made, repair says what it
// needs.
std::string cure_of(const FeatureFile& file, const LoadOptions& options) {
  try {
    return melflow::cure_of(plan_of(file, options), file.path());
  } catch (const std::runtime_error&) {
  } catch (const NeedsPython&) {
  }
  return cure_of_damaged_rows(file.path(), 1);
}

std::string text_of(const FeatureFile& file, const CheckedRows& found, const LoadOptions& options) {
  std::string out = fmt::format("{}: the rows of {} are what was written", file.path(),
                                plural(found.right, "file"));
  if (found.unknown > 0)
    out += fmt::format("; the rows of {} cannot be checked, as they have no hash",
                       plural(found.unknown, "file"));
  if (!found.wrong.empty()) {
    out += fmt::format("; those of {} are not:", plural(found.wrong.size(), "file"));
    list_some(out, found.wrong, [&](std::size_t i) { return one_line(file.files()[i].path); });
    out += fmt::format("\nIs the disk sound? If so, {}", cure_of(file, options));
  }
  return out + "\n";
}

std::string text_of(const FeatureFile& file, const Recomputed& found) {
  const auto path = [&](std::size_t i) { return one_line(file.files()[i].path); };
  std::string out =
      fmt::format("computed from the audio once more, those of {} are the same, bit for bit",
                  plural(found.same.size(), "file"));
  if (!found.other.empty()) {
    out += fmt::format("; those of {} are not:", plural(found.other.size(), "file"));
    list_some(out, found.other, path);
    out +=
        "\nWhat decodes, resamples or computes here gives other values than what made the output";
  }
  if (!found.exchanged.empty()) {
    out += fmt::format(
        "{} of {} are those of another recording:", found.other.empty() ? "; those" : "\nthose",
        plural(found.exchanged.size(), "file"));
    list_some(out, found.exchanged, [&](const auto& e) {
      return fmt::format("{} has the audio that {} had", path(e.first), path(e.second));
    });
    out +=
        "\nFiles were exchanged or renamed, and have the size and time that the index says. Put "
        "them back, or make the output again (overwrite: true)";
  }
  if (!found.lost.empty()) {
    out += fmt::format("\ngave rows then and none now: {}", plural(found.lost.size(), "file"));
    list_some(out, found.lost, [&](const auto& l) {
      return fmt::format("{}: {}", path(l.first), one_line(l.second));
    });
  }
  if (!found.changed.empty()) {
    out += fmt::format("\nchanged or gone since, and so not computed: {}",
                       plural(found.changed.size(), "file"));
    list_some(out, found.changed, path);
  }
  return out + "\n";
}

Json json_of(const FeatureFile& file, const Recomputed& found) {
  Json out{{"same", found.same.size()},
           {"other", Json::array()},
           {"exchanged", Json::array()},
           {"lost", Json::array()},
           {"changed", Json::array()}};
  for (const std::size_t i : found.other) out["other"].push_back(file.files()[i].path);
  for (const auto& [i, whose] : found.exchanged)
    out["exchanged"].push_back(
        {{"path", file.files()[i].path}, {"has_audio_of", file.files()[whose].path}});
  for (const auto& [i, reason] : found.lost)
    out["lost"].push_back({{"path", file.files()[i].path}, {"reason", reason}});
  for (const std::size_t i : found.changed) out["changed"].push_back(file.files()[i].path);
  return out;
}

int run_verify(const VerifyArguments& arguments) {
  const FeatureFile file(arguments.file);
  const CheckedRows found = check_rows(file);
  const std::vector<std::string> unfit = misfits(file, false);
  std::optional<Recomputed> anew;
  if (arguments.recompute)
    anew = recompute(file, *arguments.recompute, arguments.seed, arguments.stored.load_options());
  if (arguments.json) {
    nlohmann::ordered_json out{{"path", file.path()},
                               {"right", found.right},
                               {"unknown", found.unknown},
                               {"wrong", nlohmann::ordered_json::array()}};
    for (const std::size_t i : found.wrong) out["wrong"].push_back(file.files()[i].path);
    out["misfits"] = unfit;
    if (anew) out["recomputed"] = json_of(file, *anew);
    put(stdout, json_text(out));
  } else {
    put(stdout, text_of(file, found, arguments.stored.load_options()));
    for (const std::string& one : unfit) put(stdout, one_line(one) + "\n");
    if (anew) put(stdout, text_of(file, *anew));
  }
  const bool is_right =
      found.wrong.empty() && found.unknown == 0 && unfit.empty() &&
      (!anew || (anew->other.empty() && anew->exchanged.empty() && anew->lost.empty()));
  return is_right ? kDone : kRunFailed;
}

}  // namespace

Action add_verify(CLI::App& verb) {
  auto arguments = std::make_shared<VerifyArguments>();
  verb.add_option("FILE", arguments->file, "an output: .h5, .npy or .ark")->required();
  CLI::Option* recompute =
      verb.add_option_function<std::string>(
              "--recompute",
              [arguments](const std::string& text) {
                arguments->recompute.emplace();
                const std::string why =
                    OptionType<CountOrShare>::parse(Value::scalar(text), *arguments->recompute);
                if (!why.empty()) throw CLI::ValidationError("--recompute", why);
              },
              "also recomputes this many of the files from their audio (1%, 100, 100%)")
          ->type_name("COUNT");
  arguments->stored.add_to(verb, recompute);
  verb.add_option("--seed", arguments->seed,
                  "chooses the files that --recompute takes; another number chooses others");
  verb.add_flag("--json", arguments->json, "prints a JSON document instead");
  verb.footer(
      "Every file's rows are read and compared with the hash in the index. With --recompute, some "
      "are also\n"
      "computed by the configuration that the output has, from the folder that it was made in. "
      "Exit status: 0\n"
      "all rows are what was written, and those computed again are the same; 1 some are not, or "
      "have no hash.\n"
      "\n"
      "Example:\n"
      "  melflow verify features.h5\n"
      "  melflow verify features.h5 --recompute 1%");
  return [arguments] { return run_verify(*arguments); };
}

}  // namespace melflow
