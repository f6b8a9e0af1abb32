// The report of a run as one JSON document, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/profile/series.h"
#include "apps/profile/verdicts.h"
#include "pipeline/run/runner.h"

namespace melflow {

/// Returns a document as text. Bytes that are not UTF-8, as in odd file names, are escaped as
/// \udc80 to \udcff, from which Python's os.fsencode() restores them.
std::string json_text(const nlohmann::ordered_json& document);

/// Returns the whole configuration, with all defaults filled in.
nlohmann::ordered_json config_json(const Plan& plan);

/// Returns the rows that the run computed for a sink's output, without rows of earlier runs and of
/// files that did not end ok. For a sink without an output of rows: all rows that it took.
std::size_t rows_made(const StageReport& sink);

/// Returns the rows that the run computed for all its outputs.
std::size_t rows_of_run(const RunReport& report, const Plan& plan);

nlohmann::ordered_json report_json(const RunReport& report, const Plan& plan,
                                   const Remarks& remarks, int exit_code,
                                   const std::vector<Verdict>& verdicts = {});

/// Returns the series, rounded to significant digits.
nlohmann::ordered_json series_json(const Series& series);
/// Returns {"from": s, "step": s, "rows": [{"NODE": [share of a step, ...], ...}, ...]}, with one
/// row per worker.
nlohmann::ordered_json workers_json(const WorkerTimes& times, const RunReport& report);

/// Returns the document of a run that never started: {"ending": "not_started", "problems": [...]}.
nlohmann::ordered_json not_started_json(const ConfigError& error, int exit_code);
nlohmann::ordered_json not_started_json(const std::string& error, int exit_code);

nlohmann::ordered_json problems_json(const std::vector<Problem>& problems);

}  // namespace melflow
