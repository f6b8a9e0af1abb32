// What every verb that reads a configuration takes: FILE, --set, --var and --workers.
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

/// --set and --var, for whatever pipelines a verb reads.
struct PlanOverrides {
  std::vector<std::string> sets, vars;

  void add_to(CLI::App& verb);
  void add_sets_to(CLI::App& verb);                           ///< --set alone
  [[nodiscard]] std::vector<Assignment> assignments() const;  ///< of --set
  /// `file`: as find_pipeline() takes it. Throws ConfigError.
  [[nodiscard]] Plan load(const std::string& file, std::optional<int> workers = {}) const;
  /// Of a pipeline that is not run: paths need not be there, nor variables have values. Adds the
  /// names of its variables to `asked`; once all pipelines are read, check_used().
  [[nodiscard]] Plan look_at(const std::string& file, std::set<std::string>& asked) const;
  /// Throws ConfigError where a --var is of none of these.
  void check_used(const std::set<std::string>& asked) const;

 private:
  [[nodiscard]] LoadOptions load_options() const;
};

struct PlanArguments {
  std::string file;
  PlanOverrides overrides;
  std::optional<int> workers;

  void add_to(CLI::App& verb);
  /// Throws ConfigError.
  [[nodiscard]] Plan load() const;
};

/// The file that `name` means: a path, or a pipeline that comes with melflow ("demo", with or
/// without ".yaml"). Throws ConfigError when there is neither.
std::string find_pipeline(const std::string& name);

}  // namespace melflow
