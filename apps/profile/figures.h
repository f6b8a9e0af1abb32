// Rates and shares computed from a run's counts. The text and JSON reports and all judgements of a
// run use these.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "pipeline/report/report.h"

namespace melflow {

/// Figures of one stage per second of the time in which stages worked; 0 where one has no meaning.
struct StageFigures {
  double files_per_second = 0;  ///< source items taken, or for a source, emitted
  double bytes_in_per_second = 0, bytes_out_per_second = 0;
  double rows_per_second = 0;  ///< emitted, or for a sink, taken
  double used = 0;             ///< how many of its slots were busy, on average
};
StageFigures stage_figures(const StageReport& stage, const RunReport& report);

struct RunFigures {
  std::size_t files =
      0;  ///< that were worked on: ok (except those kept by an update), skipped and failed
  double files_per_second = 0;      ///< over the whole run
  double cores_used = 0;            ///< on average over the whole time
  double page_cache_share = 0;      ///< the share of the bytes read that came from the page cache
  double disk_read_per_second = 0;  ///< bytes from the disk, over the whole time
};
RunFigures run_figures(const RunReport& report);
/// Returns files per second of the time in which stages worked, including the time in which audio
/// was loaded.
double files_per_working_second(const RunReport& report);

/// Returns what a stage says of itself under this name, or null.
const Value* summary_of(const StageReport& stage, std::string_view name);
/// Returns the number that a value is, or 0.
double number_of(const Value* value);

/// Returns the median of one or more values; of an even number, the mean of the middle two.
double median(std::vector<double> values);

}  // namespace melflow
