// The arguments of every verb that reads a configuration: FILE, --set, --var and --workers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/load.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace melflow {

/// The options --set and --var, for all pipelines that a verb reads.
struct PlanOverrides {
  std::vector<std::string> sets, vars;

  void add_to(CLI::App& verb);
  [[nodiscard]] std::vector<Assignment> assignments() const;  ///< the arguments of --set
  /// Makes the plan of a pipeline. `file`: as for find_pipeline(). Throws ConfigError.
  [[nodiscard]] Plan load(const std::string& file, std::optional<int> workers = {}) const;
  /// Makes the plan of a pipeline that load() accepted, with additional --set, which may leave a
  /// --var unused.
  [[nodiscard]] Plan load_with(const std::string& file, std::optional<int> workers,
                               const std::vector<std::string>& further_sets) const;
  /// Makes the plan of a pipeline that is not run: paths need not exist, nor variables have values.
  /// Adds its variables to `asked`, for check_used() after all pipelines are read.
  [[nodiscard]] Plan look_at(const std::string& file, std::set<std::string>& asked) const;
  /// Does the same for a text; `name` stands for its file in messages.
  [[nodiscard]] Plan look_at_text(const std::string& text, const std::string& name,
                                  std::set<std::string>& asked) const;
  /// Throws ConfigError when a --var names none of these variables.
  void check_used(const std::set<std::string>& asked) const;
  /// Returns the options with which load() reads a pipeline.
  [[nodiscard]] LoadOptions load_options() const;
};

/// The options --var and --trust of verbs that run a stored configuration, of an output or a job.
struct StoredOverrides {
  std::vector<std::string> vars;
  bool is_trusted = false;

  /// `needed`: an option without which these have no meaning; may be null.
  void add_to(CLI::App& verb, CLI::Option* needed = nullptr);
  [[nodiscard]] LoadOptions load_options(std::optional<int> workers = {}) const;
};

struct PlanArguments {
  std::string file;
  PlanOverrides overrides;
  std::optional<int> workers;

  void add_to(CLI::App& verb);
  /// Makes the plan of FILE. Throws ConfigError.
  [[nodiscard]] Plan load() const;
};

/// Finds the file for `name`: a path, "-" for the standard input, or a pipeline that comes with
/// melflow ("demo", with or without ".yaml"). Throws ConfigError when there is neither.
std::string find_pipeline(const std::string& name);
/// Returns the sorted names of shipped pipelines; none for a copy of the program alone.
std::vector<std::string> shipped_pipeline_names();
/// Whether an argument that could also be another file is a pipeline: it ends in .yaml or .yml, or
/// it has no extension and is no file, so may be one that comes with melflow.
bool is_pipeline_name(const std::string& argument);

}  // namespace melflow
