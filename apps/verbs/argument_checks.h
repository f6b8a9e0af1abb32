// Checks of values on the command line, each with a message that says what is allowed; times as
// people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace melflow {

CLI::Validator is_integer(std::int64_t least, std::int64_t most);
CLI::Validator is_one_of(const std::vector<std::string>& names);

/// Adds the option --workers. `workers` outlives the reading of options.
void add_workers(CLI::App& verb, std::optional<int>& workers,
                 const char* what = "threads that compute; 0: as many as there are cores");

/// The seconds in "11h50m", "90s", "1.5h" or "250ms": numbers with units, largest first; or in
/// "90", a number of seconds. Nothing for any other text, and for no time at all.
std::optional<double> duration_seconds(std::string_view text);

/// Adds an option that takes such a time to a verb, and 0 where that is allowed. `seconds` outlives
/// the reading of options.
void add_time(CLI::App& verb, const char* name, double& seconds, const char* what,
              bool may_be_zero = false);

}  // namespace melflow
