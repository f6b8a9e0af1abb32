#include "apps/verbs/trials.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/profile/figures.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/duration.h"
#include "apps/verbs/watched_run.h"
#include "pipeline/base/cpu.h"

namespace melflow {

void TrialArguments::add_to(CLI::App& verb) {
  const std::string what = fmt::format(
      "starts no new files after this time in a run (default {:g}s); 0: takes all files", seconds);
  add_time(verb, "--seconds", seconds, what.c_str(), true);
  verb.add_flag("--json", json, "prints a JSON document instead");
  verb.add_flag("--no-progress", no_progress, "prints no progress");
}

Trials::Trials(const TrialArguments& arguments)
    : arguments_(arguments), outputs_(arguments.plan.load()) {}

void Trials::show_warnings(const std::vector<Changes>& all) const {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> own;
    for (const Problem& w : plan_with(all[i], {}).warnings) own.push_back(w.str());
    if (i == 0) shown = own;
    std::erase_if(shown, [&own](const std::string& text) {
      return std::find(own.begin(), own.end(), text) == own.end();
    });
  }
  for (const std::string& text : shown) say(stderr, "warning: {}\n", text);
}

Plan Trials::plan_with(const Changes& changes, std::vector<std::string> sets) const {
  std::optional<int> workers = arguments_.plan.workers;
  for (const auto& [option, value] : changes) {
    sets.push_back(fmt::format("{}={}", option, value));
    if (option == "workers") workers.reset();  // --workers would win otherwise
  }
  return arguments_.plan.overrides.load_with(arguments_.plan.file, workers, sets);
}

RunReport Trials::run(const Changes& changes, nlohmann::ordered_json* document, Cache cache) const {
  Runner runner(plan_with(changes, outputs_.sets()));
  Watch watch{.seconds = arguments_.seconds};
  if (arguments_.no_progress || arguments_.json) watch.progress = ProgressDisplay::Mode::none;
  begin_peak_resident();
  WatchedRun done = run_watched(runner, watch);
  outputs_.clear(cache == Cache::kept);
  if (done.interrupted) throw Interrupted{};
  if (done.report.ending == Ending::failed) throw RunError(done.report.error);
  if (document != nullptr) *document = report_json(done.report, runner.plan(), {}, 0);
  return std::move(done.report);
}

double Trials::rate(const RunReport& report) {
  const double files_per_second = files_per_working_second(report);
  if (files_per_second <= 0) throw RunError("a trial run dealt with no file");
  return files_per_second;
}

}  // namespace melflow
