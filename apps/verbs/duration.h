// Times as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace CLI {
class App;
}

namespace melflow {

/// The seconds in "11h50m", "90s", "1.5h" or "250ms": numbers with units, largest first; or in "90", a
/// number of seconds. Nothing for any other text, and for no time at all.
std::optional<double> duration_seconds(std::string_view text);

/// Adds an option that takes such a time to a verb, and 0 where that is allowed. `seconds` outlives the
/// reading of options.
void add_time(CLI::App& verb, const char* name, double& seconds, const char* what,
              bool may_be_zero = false);

}  // namespace melflow
