// Writes a run as a trace for ui.perfetto.dev or chrome://tracing, in the Trace Event Format: the
// activity of each worker and dedicated thread, the paths of files from stage to stage, and the
// series as counters.
#pragma once

#include <string>

#include "apps/profile/series.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"
#include "pipeline/report/visit_log.h"

namespace melflow {

/// Returns the whole document; times are in microseconds since the run began. Spans of category
/// `stage` add up to the stages' busy seconds; those of `loading` come from loading the audio.
/// Counters `NAME states` tell how many of a stage's slots were in each state until the next point.
std::string trace_json(const VisitLog& visits, const Series& series, const RunReport& report,
                       const Plan& plan);

/// Returns the warning about visits that the log could not hold.
std::string left_out_text(const VisitLog& visits);

}  // namespace melflow
