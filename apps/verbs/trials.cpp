#include "apps/verbs/trials.h"

#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/profile/resources.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/watched_run.h"

namespace melflow {
namespace {

Plan first_plan(const PlanArguments& arguments) {
  Plan plan = arguments.load();
  for (const Problem& w : plan.warnings) say(stderr, "warning: {}\n", w.str());
  return plan;
}

}  // namespace

Trials::Trials(const PlanArguments& arguments, double seconds, bool shows_progress)
    : arguments_(arguments),
      seconds_(seconds),
      shows_progress_(shows_progress),
      outputs_(first_plan(arguments)) {}

Plan Trials::plan_with(const Changes& changes) const {
  std::vector<std::string> sets = outputs_.sets();
  std::optional<int> workers = arguments_.workers;
  for (const auto& [option, value] : changes) {
    sets.push_back(fmt::format("{}={}", option, value));
    if (option == "workers") workers.reset();  // --workers would win otherwise
  }
  return arguments_.overrides.load_with(arguments_.file, workers, sets);
}

RunReport Trials::run(const Changes& changes, nlohmann::ordered_json* document) const {
  Runner runner(plan_with(changes));
  Watch watch{.seconds = seconds_};
  if (!shows_progress_) watch.progress = ProgressDisplay::Mode::none;
  WatchedRun done = run_watched(runner, watch);
  outputs_.clear();
  if (done.interrupted) throw Interrupted{};
  if (done.report.ending == Ending::failed) throw RunError(done.report.error);
  if (document != nullptr) *document = report_json(done.report, runner.plan(), {}, 0);
  return std::move(done.report);
}

double Trials::rate(const RunReport& report) {
  const double files_per_second = demands_of(report).files_per_second;
  if (files_per_second <= 0) throw RunError("a trial run dealt with no file");
  return files_per_second;
}

}  // namespace melflow
