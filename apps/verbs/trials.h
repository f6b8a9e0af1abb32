// Runs of a pipeline that are made only to be measured, with changes of its options.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/scratch_outputs.h"
#include "pipeline/report/report.h"

namespace melflow {

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
  /// Whether a cache of decoded audio that a run filled is there for the next run, or until clear().
  enum class Cache { removed, kept };
  /// Throws as check() does, and RunError where the run fails. `document`, unless
  /// null, gets its JSON report. The peak of resident memory is that of this run.
  RunReport run(const Changes& changes = {}, nlohmann::ordered_json* document = nullptr,
                Cache cache = Cache::removed) const;
  /// Removes all that runs wrote.
  void clear() const { outputs_.clear(); }
  /// The files per second of a run while audio was loaded or its stages worked. Throws RunError where
  /// there were none.
  static double rate(const RunReport& report);

 private:
  [[nodiscard]] Plan plan_with(const Changes& changes, std::vector<std::string> sets) const;

  const TrialArguments& arguments_;
  const ScratchOutputs outputs_;
};

}  // namespace melflow
