// Runs of a pipeline for measurement only, with changed options. Their outputs go into temporary
// folders beside the real outputs, so on the same disks, and are removed. An existing cache of
// decoded audio is used; a missing one is filled by every such run and then removed.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/profile/tuning.h"
#include "apps/verbs/plan_arguments.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"

namespace melflow {

class ScratchOutputs {
 public:
  /// Makes folders for all nodes of the plan that write files or have a cache. Throws RunError
  /// where such a node has no option `path`, or where a folder cannot be made.
  explicit ScratchOutputs(const Plan& plan);
  ~ScratchOutputs();
  ScratchOutputs(const ScratchOutputs&) = delete;
  ScratchOutputs& operator=(const ScratchOutputs&) = delete;

  /// Returns the options that redirect the outputs, as --set takes them.
  [[nodiscard]] const std::vector<std::string>& sets() const { return sets_; }
  /// The files that the plan would write without them.
  [[nodiscard]] const std::vector<std::string>& replaced() const { return replaced_; }
  /// Throws UsageError where a plan with other options than sets() writes elsewhere.
  void check(const Plan& plan) const;
  /// Removes what was written, for the next run; `but_caches`: keeps caches of decoded audio.
  void clear(bool but_caches = false) const;

 private:
  void add_cache(const PlanNode& node);
  void remove();

  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> caches_;  // those of folders_ that have a cache
  std::vector<std::string> sets_, replaced_;
};

/// The arguments of verbs that make such runs, besides their own.
struct TrialArguments {
  PlanArguments plan = {};
  double seconds = 0;  ///< no new files are started after this time; 0: no limit
  bool json = false;
  bool no_progress = false;

  /// Adds all options but `plan`, because its FILE comes before a verb's own arguments.
  void add_to(CLI::App& verb);
};

class Trials {
 public:
  /// Thrown when a signal ends the trials.
  struct Interrupted {};
  /// `arguments` must outlive the object.
  explicit Trials(const TrialArguments& arguments);

  /// Throws ConfigError where the pipeline cannot be run with these changes, and UsageError where
  /// they change what it writes to.
  void check(const Settings& changes) const { (void)redirected(changes); }
  /// The files that the pipeline writes when it is run.
  [[nodiscard]] const std::vector<std::string>& outputs() const { return outputs_.replaced(); }
  /// Shows the warnings on the pipeline that all of these changes have in common.
  void show_warnings(const std::vector<Settings>& all) const;
  /// Whether a cache of decoded audio that a run filled is removed, or kept until clear().
  enum class Cache { removed, kept };
  /// Throws as check() does, and RunError where the run fails. `document`, unless null, gets its
  /// JSON report. The peak of resident memory counts this run only.
  RunReport run(const Settings& changes = {}, nlohmann::ordered_json* document = nullptr,
                Cache cache = Cache::removed) const;
  /// Appends the files per second of a run without and of one with the last change: runs alternate,
  /// so that changes on the machine affect both sides equally. Returns the report of the latter.
  RunReport add_pair(Pairs& to, const Settings& without, const Settings& with) const;
  /// Removes everything that runs wrote.
  void clear() const { outputs_.clear(); }
  /// Returns a run's files per second while audio was loaded or stages worked. Throws RunError
  /// where there were none.
  static double rate(const RunReport& report);

 private:
  [[nodiscard]] Plan redirected(const Settings& changes) const;
  [[nodiscard]] Plan plan_with(const Settings& changes, std::vector<std::string> sets) const;

  const TrialArguments& arguments_;
  const ScratchOutputs outputs_;
};

/// Does what a verb does with trials, and returns its exit status or, where a signal ends them,
/// that of a run that was stopped.
int with_trials(const TrialArguments& arguments, const std::function<int(const Trials&)>& work);

}  // namespace melflow
