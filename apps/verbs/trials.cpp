#include "apps/verbs/trials.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/watched_run.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

void check_has_path(const PlanNode& node) {
  if (node.resources.files_made.empty()) return;
  const std::vector<std::string> options = node.config->schema().names();
  if (std::find(options.begin(), options.end(), "path") == options.end())
    throw RunError(
        fmt::format("{} ({}): writes {} and has no option path, by which a trial could write "
                    "elsewhere",
                    node.name, node.info->name, excerpt(node.resources.files_made.front())));
}

fs::path folder_beside(const std::string& node, const fs::path& output) {
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  std::string name = (parent / ".melflow-scratch-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw RunError(fmt::format("{}: cannot make a folder for a trial output in {}: {}", node,
                               excerpt(parent.string()), std::generic_category().message(errno)));
  return name;
}

// "": none
std::string cache_of(const PlanNode& node) {
  const Value options = node.config->schema().echo();
  const Value* path = options.find("cache_path");
  return path == nullptr ? "" : path->text();
}

}  // namespace

ScratchOutputs::ScratchOutputs(const Plan& plan) : replaced_(files_made(plan)) {
  // Checks all before the first folder is made: a constructor that throws has no destructor.
  for (const PlanNode& node : plan.nodes) check_has_path(node);
  try {
    for (const PlanNode& node : plan.nodes) {
      add_cache(node);
      if (node.resources.files_made.empty()) continue;
      const fs::path output = node.resources.files_made.front();
      folders_.push_back(folder_beside(node.name, output));
      sets_.push_back(
          fmt::format("{}.path={}", node.written, (folders_.back() / output.filename()).string()));
    }
  } catch (...) {
    remove();
    throw;
  }
}

// Links to the cache's files, so that trials use them; entries that a trial adds are valid later,
// too.
void ScratchOutputs::add_cache(const PlanNode& node) {
  const std::string path = cache_of(node);
  if (path.empty()) return;
  std::error_code ignored;
  const fs::path cache = fs::absolute(path);
  fs::path place = cache;  // a run makes missing folders
  while (!fs::exists(place.parent_path(), ignored)) place = place.parent_path();
  folders_.push_back(folder_beside(node.name, place));
  caches_.push_back(folders_.back());
  std::error_code error;
  for (fs::directory_iterator e(cache, error), end; !error && e != end; e.increment(error))
    fs::create_symlink(e->path(), folders_.back() / e->path().filename(), ignored);
  sets_.push_back(fmt::format("{}.cache_path={}", node.written, folders_.back().string()));
}

ScratchOutputs::~ScratchOutputs() { remove(); }

void ScratchOutputs::check(const Plan& plan) const {
  const auto check = [this](const PlanNode& node, const std::string& path) {
    const std::string place = fs::absolute(path).lexically_normal();
    if (std::none_of(folders_.begin(), folders_.end(), [&](const fs::path& folder) {
          const std::string below = fs::absolute(folder).lexically_normal();
          return place == below || place.starts_with(below + "/");
        }))
      throw UsageError(
          fmt::format("{} ({}): a trial would write to {}, and not into its folder beside the "
                      "output; vary no option that says where the pipeline writes",
                      node.name, node.info->name, excerpt(path)));
  };
  for (const PlanNode& node : plan.nodes) {
    for (const std::string& path : node.resources.files_made) check(node, path);
    if (const std::string cache = cache_of(node); !cache.empty()) check(node, cache);
  }
}

void ScratchOutputs::remove() {
  std::error_code ignored;
  for (const fs::path& folder : folders_) fs::remove_all(folder, ignored);
}

void ScratchOutputs::clear(bool but_caches) const {
  for (const fs::path& folder : folders_) {
    if (but_caches && std::find(caches_.begin(), caches_.end(), folder) != caches_.end()) continue;
    std::error_code error, ignored;
    for (fs::directory_iterator e(folder, error), end; !error && e != end; e.increment(error))
      if (!e->is_symlink(ignored)) fs::remove_all(e->path(), ignored);
  }
}

void TrialArguments::add_to(CLI::App& verb) {
  const std::string what = fmt::format(
      "starts no new files after this time in a run (default {:g}s); 0: takes all files", seconds);
  add_time(verb, "--seconds", seconds, what.c_str(), true);
  verb.add_flag("--json", json, "prints a JSON document instead");
  verb.add_flag("--no-progress", no_progress, "prints no progress");
}

Trials::Trials(const TrialArguments& arguments)
    : arguments_(arguments), outputs_(arguments.plan.load()) {}

void Trials::show_warnings(const std::vector<Settings>& all) const {
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

Plan Trials::redirected(const Settings& changes) const {
  Plan plan = plan_with(changes, outputs_.sets());
  outputs_.check(plan);
  return plan;
}

Plan Trials::plan_with(const Settings& changes, std::vector<std::string> sets) const {
  std::optional<int> workers = arguments_.plan.workers;
  for (const auto& [option, value] : changes) {
    sets.push_back(fmt::format("{}={}", option, value));
    if (option == "workers") workers.reset();  // otherwise --workers would override it
  }
  return arguments_.plan.overrides.load_with(arguments_.plan.file, workers, sets);
}

RunReport Trials::run(const Settings& changes, nlohmann::ordered_json* document,
                      Cache cache) const {
  Runner runner(redirected(changes));
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

RunReport Trials::add_pair(Pairs& to, const Settings& without, const Settings& with) const {
  to.without.push_back(rate(run(without)));
  RunReport out = run(with);
  to.with.push_back(rate(out));
  return out;
}

double Trials::rate(const RunReport& report) {
  const double files_per_second = files_per_working_second(report);
  if (files_per_second <= 0) throw RunError("a trial run dealt with no file");
  return files_per_second;
}

int with_trials(const TrialArguments& arguments, const std::function<int(const Trials&)>& work) {
  try {
    return work(Trials(arguments));
  } catch (const Trials::Interrupted&) {
    complain("stopped; what the trials wrote is removed");
    return kStopped;
  }
}

}  // namespace melflow
