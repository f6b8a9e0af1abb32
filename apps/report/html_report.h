// The report of a run as one HTML page: tables, which its own script replaces by drawings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace melflow {

/// Returns a page that shows the JSON report of a run (report_json), with its series if it has one,
/// and loads nothing from elsewhere. Of a document without `files` it shows `stages` and `edges`
/// only: a graph, whose stages may have `options`, texts to show, and whose edges a `label`.
std::string html_report(const nlohmann::ordered_json& report);

}  // namespace melflow
