// Runs of a pipeline that are made only to be measured, with changes of its options. What they
// write goes into folders of its own, beside the outputs and so on the same disks, and is removed.
// A cache of decoded audio that is there is used; one that is not is filled by every such run, and
// gone after it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/verbs/plan_arguments.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"

namespace melflow {

class ScratchOutputs {
 public:
  /// For all nodes of the plan that make files or have a cache. Throws RunError where such a node
  /// has no option `path`, or where a folder cannot be made.
  explicit ScratchOutputs(const Plan& plan);
  ~ScratchOutputs();
  ScratchOutputs(const ScratchOutputs&) = delete;
  ScratchOutputs& operator=(const ScratchOutputs&) = delete;

  /// The options that send the outputs there, as --set takes them.
  [[nodiscard]] const std::vector<std::string>& sets() const { return sets_; }
  /// Removes what was written, for the next run; `but_caches`: caches of decoded audio stay.
  void clear(bool but_caches = false) const;

 private:
  void add_cache(const PlanNode& node);
  void remove();

  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> caches_;  // those of folders_ with a cache
  std::vector<std::string> sets_;
};

/// The arguments of verbs that make such runs, beside their own.
struct TrialArguments {
  PlanArguments plan = {};
  double seconds = 0;  ///< after which a run starts no new files; 0: never
  bool json = false;
  bool no_progress = false;

  /// Adds all but `plan`, whose file comes before a verb's own.
  void add_to(CLI::App& verb);
};

class Trials {
 public:
  /// Thrown where a signal ends the trials.
  struct Interrupted {};
  /// Options and values, as for --set.
  using Changes = std::vector<std::pair<std::string, std::string>>;

  /// `arguments` outlive it.
  explicit Trials(const TrialArguments& arguments);

  /// Throws ConfigError where the pipeline cannot be run with these changes.
  void check(const Changes& changes) const { (void)plan_with(changes, outputs_.sets()); }
  /// Shows the warnings on the pipeline with any of these changes: those that all of them have.
  void show_warnings(const std::vector<Changes>& all) const;
  /// Whether a cache of decoded audio that a run filled is there for the next run, or until
  /// clear().
  enum class Cache { removed, kept };
  /// Throws as check() does, and RunError where the run fails. `document`, unless
  /// null, gets its JSON report. The peak of resident memory is that of this run.
  RunReport run(const Changes& changes = {}, nlohmann::ordered_json* document = nullptr,
                Cache cache = Cache::removed) const;
  /// Removes all that runs wrote.
  void clear() const { outputs_.clear(); }
  /// The files per second of a run while audio was loaded or its stages worked. Throws RunError
  /// where there were none.
  static double rate(const RunReport& report);

 private:
  [[nodiscard]] Plan plan_with(const Changes& changes, std::vector<std::string> sets) const;

  const TrialArguments& arguments_;
  const ScratchOutputs outputs_;
};

}  // namespace melflow
