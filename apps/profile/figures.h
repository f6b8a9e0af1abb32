// Rates and shares that follow from what a run counted. Text, JSON and everything that judges a run
// take them from here.
#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/report/report.h"

namespace melflow {

/// Of one stage, per second of the time in which the stages worked; 0 where it has no meaning.
struct StageFigures {
  double files_per_second = 0;  ///< source items that it took, of a source: that it gave
  double bytes_in_per_second = 0, bytes_out_per_second = 0;
  double rows_per_second = 0;  ///< that it gave, of a sink: that it took
  double used = 0;             ///< how many of its concurrency were at work, on average
};
StageFigures stage_figures(const StageReport& stage, const RunReport& report);

struct RunFigures {
  std::size_t files =
      0;  ///< that were worked on: ok, but not kept by an update, skipped and failed
  double files_per_second = 0;      ///< of the whole time
  double cores_used = 0;            ///< on average over the whole time
  double page_cache_share = 0;      ///< of the bytes read, those that the disk was not asked for
  double disk_read_per_second = 0;  ///< bytes from the disk, over the whole time
};
RunFigures run_figures(const RunReport& report);
/// Files a second of the time in which the stages worked, which they also do while the audio is
/// loaded.
double files_per_working_second(const RunReport& report);

/// Of one or more values; the mean of the two in the middle where their number is even.
double median(std::vector<double> values);

}  // namespace melflow
