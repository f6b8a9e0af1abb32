// melflow tune: looks for settings with which a pipeline is faster, and writes it with them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/limits.h"
#include "apps/profile/search.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/duration.h"
#include "apps/verbs/trials.h"
#include "apps/verbs/tune_space.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "config/document.h"
#include "config/edited_text.h"
#include "config/yaml_text.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

struct TuneArguments {
  TrialArguments trial{.seconds = 2};
  double budget = 60;  ///< [s]
  std::string output;
  std::uint64_t seed = 1;
};

std::string pairs_text(const Search::Pairs& p) {
  return fmt::format("{:.2f} times as fast ({:.2f} to {:.2f} in {} of runs)", p.middle, p.least,
                     p.greatest, plural(static_cast<std::size_t>(p.count), "pair"));
}

std::string evidence_text(const Search::Change& c) {
  return pairs_text(c.evidence) +
         (c.others > 0 ? fmt::format(", together with {}",
                                     plural(static_cast<std::size_t>(c.others), "other change"))
                       : "");
}

std::string settings_text(const Search::Settings& settings) {
  std::string out;
  for (const auto& [name, value] : settings)
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, value);
  return out;
}

// The configuration with the changes, as it is when everything is filled in.
Value filled_in(const std::string& text, const TuneArguments& arguments,
                const std::vector<Search::Change>& changes) {
  Value out;
  PlanOverrides overrides = arguments.trial.plan.overrides;
  for (const Search::Change& c : changes) overrides.sets.push_back(c.option + "=" + c.is);
  LoadOptions options = overrides.load_options();
  options.filled_in = &out;
  (void)load_plan_text(text, arguments.trial.plan.file, options);
  return out;
}

std::string value_in(const Value& configuration, const std::string& name) {
  const std::size_t dot = name.find('.');
  const Value* at = &configuration;
  if (dot != name.npos) {
    at = configuration.find("graph");
    at = at != nullptr ? at->find(name.substr(0, dot)) : nullptr;
  }
  at = at != nullptr ? at->find(name.substr(dot == name.npos ? 0 : dot + 1)) : nullptr;
  return at != nullptr ? at->text() : "";
}

// With comments and all; where that cannot be, everything written out.
std::string tuned_text(const TuneArguments& arguments, const Search::Result& found) {
  const std::string text = read_configuration(find_pipeline(arguments.trial.plan.file));
  std::vector<TextChange> changes;
  std::string remarks;
  for (const Search::Change& c : found.changes) {
    const std::string why =
        fmt::format("melflow tune: {} was {}; {}", c.option, c.was, evidence_text(c));
    changes.push_back({c.option, c.is, why});
    remarks += "# " + why + "\n";
  }
  const std::string together =
      fmt::format("# melflow tune: with all changes {}\n", pairs_text(found.together));
  if (const auto edited = edited_text(text, changes)) {
    try {
      const Value now = filled_in(*edited, arguments, {});
      if (std::all_of(found.changes.begin(), found.changes.end(),
                      [&](const Search::Change& c) { return value_in(now, c.option) == c.is; }))
        return together + *edited;
    } catch (const ConfigError&) {  // it is written out in full
    }
  }
  return together + remarks + yaml_text(filled_in(text, arguments, found.changes));
}

std::string table_text(const Search::Result& found) {
  std::size_t name = 0, was = 0, is = 0;
  for (const Search::Change& c : found.changes) {
    name = std::max(name, c.option.size());
    was = std::max(was, c.was.size());
    is = std::max(is, c.is.size());
  }
  std::string out;
  for (const Search::Change& c : found.changes)
    out += fmt::format("  {:<{}}  {:>{}} -> {:<{}}  {}\n", c.option, name, c.was, was, c.is, is,
                       evidence_text(c));
  return out + "together " + pairs_text(found.together) + "\n";
}

Json pairs_json(const Search::Pairs& p) {
  return {{"middle", p.middle}, {"least", p.least}, {"greatest", p.greatest}, {"count", p.count}};
}

Json tune_json(const Search::Result& found) {
  Json out{{"runs", found.runs}, {"tried", found.tried}, {"changes", Json::array()}};
  for (const Search::Change& c : found.changes)
    out["changes"].push_back({{"option", c.option},
                              {"was", c.was},
                              {"is", c.is},
                              {"with_others", c.others},
                              {"times_as_fast", pairs_json(c.evidence)}});
  if (found.together.count > 0) out["together"] = pairs_json(found.together);
  return out;
}

int tune(TuneArguments arguments) {
  const bool tells = !arguments.trial.no_progress && !arguments.trial.json;
  arguments.trial.no_progress = true;
  std::optional<WrittenFile> file;
  if (!arguments.output.empty())
    file.emplace(arguments.output, std::vector{find_pipeline(arguments.trial.plan.file)});
  try {
    const Trials trials(arguments.trial);
    Search search(searched_options(arguments.trial.plan),
                  {.run = [&](const Search::Settings& settings) -> std::optional<Search::Trial> {
                     try {
                       const RunReport report = trials.run(settings);
                       return Search::Trial{Trials::rate(report), find_limits(report).hints};
                     } catch (const ConfigError&) {
                       return std::nullopt;
                     }
                   },
                   .seconds =
                       [] {
                         return std::chrono::duration<double>(
                                    std::chrono::steady_clock::now().time_since_epoch())
                             .count();
                       },
                   .tell =
                       [&](const Search::Settings& settings, double ratio) {
                         if (tells)
                           say(stderr, "{:.2f} times as fast: {}\n", ratio,
                               settings_text(settings));
                       }},
                  arguments.budget, arguments.seed);
    const Search::Result found = search.run();
    if (arguments.trial.json) put(stdout, json_text(tune_json(found)));
    if (found.changes.empty()) {
      say(stderr, "as it is, it is as fast as with anything that was tried ({} in {}){}\n",
          plural(static_cast<std::size_t>(found.tried), "change"),
          plural(static_cast<std::size_t>(found.runs), "run"), file ? "; nothing is written" : "");
      return kDone;
    }
    put(stderr, table_text(found));
    const std::string text = tuned_text(arguments, found);
    if (file)
      file->write(text);
    else if (!arguments.trial.json)
      put(stdout, text);
    return kDone;
  } catch (const Trials::Interrupted&) {
    complain("stopped; what the trials wrote is removed");
    return kStopped;
  }
}

}  // namespace

Action add_tune(CLI::App& verb) {
  auto arguments = std::make_shared<TuneArguments>();
  arguments->trial.plan.add_to(verb);
  verb.add_option("-o,--output", arguments->output,
                  "where the pipeline with its changes is written; not set: it is printed")
      ->type_name("FILE.yaml");
  add_time(verb, "--budget", arguments->budget, "how long to look (60s)");
  verb.add_option("--seed", arguments->seed, "of the order in which values are tried")
      ->capture_default_str();
  arguments->trial.add_to(verb);
  verb.footer(
      "Tries other values of workers, concurrency, queue, files_per_task and of the options that "
      "only\n"
      "change the speed of a stage: first what `melflow explain` would say, then values beside the "
      "present\n"
      "ones. A change is taken when it is faster in every pair of runs. Rows stay as they are, and "
      "memory is\n"
      "not changed. What is written goes into a folder beside the output, which is removed at the "
      "end.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=f.h5 melflow tune mine.yaml --budget 2m -o tuned.yaml");
  return [arguments] { return tune(*arguments); };
}

}  // namespace melflow
