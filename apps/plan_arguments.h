// What every verb that reads a configuration takes: FILE, --set, --var and --workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.h"

namespace CLI {
class App;
}

namespace melflow {

struct PlanArguments {
  std::string file;
  std::vector<std::string> sets, vars;
  std::optional<int> workers;

  void add_to(CLI::App& verb);
  /// Throws ConfigError.
  [[nodiscard]] Plan load() const;
};

/// The file that `name` means: a path, or a pipeline that comes with melflow ("demo", with or
/// without ".yaml"). Throws ConfigError when there is neither.
std::string find_pipeline(const std::string& name);

}  // namespace melflow
