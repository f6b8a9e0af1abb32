// The report of a run as one HTML page that needs neither scripts nor the network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace melflow {

/// Returns a page in the style of the report. `body`: HTML.
std::string html_page(const std::string& title, const std::string& body);

/// Draws the JSON report of a run (report_json), with its series if it has one.
std::string html_report(const nlohmann::ordered_json& report);

}  // namespace melflow
