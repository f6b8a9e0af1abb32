// Formats the results of the checks of `expect:` as text and JSON, and finds figures in the JSON
// report of a run by their paths.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/profile/verdicts.h"

namespace melflow {

/// Returns one line per verdict: "expected files_per_second >= 20000: 14,480, not met".
std::string verdicts_text(const std::vector<Verdict>& verdicts);
nlohmann::ordered_json verdicts_json(const std::vector<Verdict>& verdicts);

/// Returns the element at a path such as "memory.resident_peak" or "stages.mel.call_seconds.p99",
/// or null. Elements of a list are found by name, edges by their destination
/// ("edges.mel.mean_depth"), and those about devices by the number of the device, which may be
/// omitted where there is one. Names may contain dots themselves.
const nlohmann::ordered_json* find_in_report(const nlohmann::ordered_json& report,
                                             std::string_view place);

/// Checks the expected figures in order. A figure that is missing in the report or is no number
/// counts as not met.
std::vector<Verdict> verdicts_on_figures(const FigureBounds& expected,
                                         const nlohmann::ordered_json& report);

}  // namespace melflow
