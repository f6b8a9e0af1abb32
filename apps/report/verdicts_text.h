// The results of the checks of `expect:`, as text and as JSON; numbers of the JSON report of a run,
// by their places in it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/profile/verdicts.h"

namespace melflow {

/// A line for each: "expected files_per_second >= 20000: 14,480, not met".
std::string verdicts_text(const std::vector<Verdict>& verdicts);
nlohmann::ordered_json verdicts_json(const std::vector<Verdict>& verdicts);

/// What is at `place`: "memory.resident_peak", "stages.mel.call_seconds.p99". Elements of a list go
/// by their name, edges by the node they lead to: "edges.mel.mean_depth". Names may have dots
/// themselves. Null where there is nothing.
const nlohmann::ordered_json* find_in_report(const nlohmann::ordered_json& report,
                                             std::string_view place);

/// Of the figures that are expected, in their order. What is not in the report, or is no number
/// there, is not met.
std::vector<Verdict> verdicts_on_figures(const FigureBounds& expected,
                                         const nlohmann::ordered_json& report);

}  // namespace melflow
