// Checks of command-line values, whose messages say what is allowed; parsing of times such as
// "1.5h".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/expectations.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace melflow {

CLI::Validator is_integer(std::int64_t least, std::int64_t most);
CLI::Validator is_one_of(const std::vector<std::string>& names);

/// Parses the value of an option, "< 0.1%" or "<= 10". Throws UsageError.
CountBound count_bound(const char* option, const std::string& text);

/// Adds the option --workers. `workers` must outlive the parsing of options.
void add_workers(CLI::App& verb, std::optional<int>& workers,
                 const char* what = "threads that compute; 0: as many as there are cores");

/// Returns the seconds in "11h50m", "90s", "1.5h" or "250ms" (numbers with units, largest first),
/// or in "90" (a number of seconds). Returns nothing for any other text and for zero.
std::optional<double> duration_seconds(std::string_view text);

/// Adds an option that takes such a time, or 0 where that is allowed. `seconds` must outlive the
/// parsing of options.
void add_time(CLI::App& verb, const char* name, double& seconds, const char* what,
              bool may_be_zero = false);

}  // namespace melflow
