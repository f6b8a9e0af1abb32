// Times as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace melflow {

/// The seconds in "11h50m", "90s", "1.5h" or "250ms": numbers with units, largest first. Nothing for
/// any other text, and for no time at all.
std::optional<double> duration_seconds(std::string_view text);

}  // namespace melflow
