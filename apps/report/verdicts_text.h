// The results of the checks of `expect:`, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/profile/verdicts.h"

namespace melflow {

/// A line for each: "expected files_per_second >= 20000: 14,480, not met".
std::string verdicts_text(const std::vector<Verdict>& verdicts);
nlohmann::ordered_json verdicts_json(const std::vector<Verdict>& verdicts);

}  // namespace melflow
