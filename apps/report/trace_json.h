// A run as a trace for ui.perfetto.dev or chrome://tracing, in the Trace Event Format: what each
// worker and each dedicated thread did when, the way of files from stage to stage, and the series
// as counters.
#pragma once

#include <string>

#include "apps/profile/series.h"
#include "pipeline/plan/plan.h"
#include "pipeline/report/report.h"
#include "pipeline/report/visit_log.h"

namespace melflow {

/// The whole document; times in microseconds since the run began. The spans of category `stage` add
/// up to the stages' busy seconds, those of `loading` are of a filling pass. Counters `NAME states`
/// say how many of the stage's places were in each state until the next point.
std::string trace_json(const VisitLog& visits, const Series& series, const RunReport& report,
                       const Plan& plan);

/// The warning about visits that the log could not keep.
std::string left_out_text(const VisitLog& visits);

}  // namespace melflow
