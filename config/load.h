// Makes a checked plan from a configuration (YAML, --var, --set), or reports all of its problems
// together.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/trust.h"
#include "config/variables.h"
#include "pipeline/plan/plan.h"

namespace melflow {

struct LoadOptions {
  std::vector<Assignment> vars;
  /// NODE.OPTION=VALUE, also for options in groups (segment.long.length) and top-level options
  /// (memory.host). A value is plain text, or YAML if it begins with one of [ { " '.
  std::vector<Assignment> sets;
  std::optional<int> workers;  ///< overrides the configuration's number of workers
  /// Who wrote the configuration. An effect that this does not allow is a problem.
  Trust trust = {};
  /// Whether the configuration was stored in an output, with all options of its time; Field::was()
  /// gives values for newer ones.
  bool has_all_options = false;
  /// Set to examine a configuration without running it: gets the names of its variables. A variable
  /// without a value is then not a problem, and the caller must call check_unused().
  std::set<std::string>* asked = nullptr;
  /// Gets the configuration with its variables and overrides filled in; may be null.
  Value* filled_in = nullptr;
};

/// Reads a file and makes its plan, whose services include the run's Expectations. Relative paths
/// in the configuration are relative to the current folder. Throws ConfigError.
Plan load_plan(const std::filesystem::path& file, const LoadOptions& options = {},
               const Registry& registry = Registry::global());

/// Does the same for a text; `name` stands for the file in messages.
Plan load_plan_text(const std::string& text, const std::string& name,
                    const LoadOptions& options = {}, const Registry& registry = Registry::global());

}  // namespace melflow
