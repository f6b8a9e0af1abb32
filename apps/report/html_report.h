// The report of a run as one page for a browser, without a script and without the network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace melflow {

/// Draws what is in the JSON report of a run (report_json), with its series where it has one.
std::string html_report(const nlohmann::ordered_json& report);

}  // namespace melflow
