// The arguments of every verb that reads a configuration: FILE, --set, --var and --workers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/load.h"

namespace CLI {
class App;
}

namespace melflow {

/// The options --set and --var, for all pipelines that a verb reads.
struct PlanOverrides {
  std::vector<std::string> sets, vars;

  void add_to(CLI::App& verb);
  [[nodiscard]] std::vector<Assignment> assignments() const;  ///< the arguments of --set
  /// Makes the plan of a pipeline. `file`: as find_pipeline() takes it. Throws ConfigError.
  [[nodiscard]] Plan load(const std::string& file, std::optional<int> workers = {}) const;
  /// Makes the plan of a pipeline that load() has taken, with further --set, which may leave a
  /// --var without use.
  [[nodiscard]] Plan load_with(const std::string& file, std::optional<int> workers,
                               const std::vector<std::string>& further_sets) const;
  /// Makes the plan of a pipeline that is not run: paths need not exist, nor variables have values.
  /// Adds the names of its variables to `asked`, for check_used() once all pipelines are read.
  [[nodiscard]] Plan look_at(const std::string& file, std::set<std::string>& asked) const;
  /// Throws ConfigError when a --var names none of these variables.
  void check_used(const std::set<std::string>& asked) const;
  /// The arguments by which load() reads a pipeline.
  [[nodiscard]] LoadOptions load_options() const;
};

struct PlanArguments {
  std::string file;
  PlanOverrides overrides;
  std::optional<int> workers;

  void add_to(CLI::App& verb);
  /// Makes the plan of FILE. Throws ConfigError.
  [[nodiscard]] Plan load() const;
};

/// The file that `name` stands for: a path, "-" for the standard input, or a pipeline that comes
/// with melflow ("demo", with or without ".yaml"). Throws ConfigError when there is neither.
std::string find_pipeline(const std::string& name);
/// The names of the pipelines that come with melflow, sorted; none for a copy of the program alone.
std::vector<std::string> shipped_pipeline_names();
/// Whether an argument that may also be another file is a pipeline: it ends in .yaml or .yml, or
/// has no ending and is no file, but perhaps one that comes with melflow.
bool is_pipeline_name(const std::string& argument);

}  // namespace melflow
