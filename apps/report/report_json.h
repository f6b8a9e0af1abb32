// The report of a run as one JSON document, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/profile/series.h"
#include "apps/profile/verdicts.h"
#include "pipeline/run/runner.h"

namespace melflow {

/// The text of a document. Bytes that are no UTF-8, as in odd file names, are escaped as \udc80 to
/// \udcff, so that Python's os.fsencode() gives them back.
std::string json_text(const nlohmann::ordered_json& document);

/// The whole configuration, with every default filled in.
nlohmann::ordered_json config_json(const Plan& plan);

/// The rows that the run computed for a sink's output: without those of an earlier run and those of
/// files that did not end well. Of a sink without an output of rows: all that it took.
std::size_t rows_made(const StageReport& sink);

/// The rows that the run computed for all its outputs.
std::size_t rows_of_run(const RunReport& report, const Plan& plan);

nlohmann::ordered_json report_json(const RunReport& report, const Plan& plan,
                                   const std::vector<Remark>& remarks, int exit_code,
                                   const std::vector<Verdict>& verdicts = {});

/// Rounded to what is worth reading.
nlohmann::ordered_json series_json(const Series& series);
/// {"from": s, "step": s, "rows": [{"NODE": [share of a step, ...], ...}, ...]}, a row for each
/// worker.
nlohmann::ordered_json workers_json(const WorkerTimes& times, const RunReport& report);

/// The document of a run that never started: {"ending": "not_started", "problems": [...]}.
nlohmann::ordered_json not_started_json(const ConfigError& error, int exit_code);
nlohmann::ordered_json not_started_json(const std::string& error, int exit_code);

nlohmann::ordered_json problems_json(const std::vector<Problem>& problems);

}  // namespace melflow
