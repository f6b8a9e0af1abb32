// A configuration (YAML, --var, --set) → a checked plan, or every problem of it in one go.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/variables.h"
#include "pipeline/plan.h"

namespace melflow {

struct LoadOptions {
  std::vector<Assignment> vars;
  /// NODE.OPTION=VALUE, options of options too (segment.long.length), or a top-level option
  /// (memory.host). A value is a plain text, or YAML when it begins with one of [ { " '.
  std::vector<Assignment> sets;
  std::optional<int> workers;  ///< before the configuration's own
  /// Of a configuration that is looked at and not run: gets the names of its variables. One
  /// without a value is no problem then, and check_unused() is the caller's.
  std::set<std::string>* asked = nullptr;
};

/// Throws ConfigError. Relative paths inside the configuration stay relative to the current folder.
Plan load_plan(const std::filesystem::path& file, const LoadOptions& options = {},
               const Registry& registry = Registry::global());

/// The same for a text; `name` stands for the file in messages.
Plan load_plan_text(const std::string& text, const std::string& name,
                    const LoadOptions& options = {}, const Registry& registry = Registry::global());

}  // namespace melflow
