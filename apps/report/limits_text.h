// The bottleneck of a run as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/profile/limits.h"

namespace melflow {

/// Returns "limited by: ..." and "would help: ..."; "" where nothing is known. Lines end with '\n'.
std::string limits_text(const Limits& limits, const RunReport& report);
/// Returns a line for each ceiling, the lowest first.
std::string ceilings_text(const Limits& limits, const RunReport& report);
/// Returns "workers: 4 with mel.concurrency: 4".
std::string sets_text(const Settings& settings);
/// Returns "mel.concurrency: 4 → about 5,900 files/s (4,400 to 6,100), now 3,000".
std::string hint_text(const Hint& hint, double files_per_second);

/// Returns {"workers": "4"}.
nlohmann::ordered_json settings_json(const Settings& settings);
nlohmann::ordered_json limits_json(const Limits& limits);

}  // namespace melflow
