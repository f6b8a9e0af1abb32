// The report of a run as one HTML page that needs neither scripts nor the network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace melflow {

/// Draws the JSON report of a run (report_json), with its series if it has one.
std::string html_report(const nlohmann::ordered_json& report);

}  // namespace melflow
