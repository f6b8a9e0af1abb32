// A run with its progress on stderr, which Ctrl-C stops.
#pragma once

#include "apps/profile/series.h"
#include "apps/report/terminal.h"
#include "pipeline/run/runner.h"

namespace melflow {

struct Watch {
  ProgressDisplay::Mode progress = ProgressDisplay::suitable_mode();
  double every = ProgressDisplay::kLineEvery;  ///< seconds between two lines of it
  bool quiet = false;                          ///< says nothing when it is stopped
  double seconds = 0;                          ///< after which no more files are begun; 0: never
  bool with_series = false;
};

struct WatchedRun {
  RunReport report;
  bool interrupted = false;  ///< by a signal
  Series series;             ///< where it was asked for
};

WatchedRun run_watched(Runner& runner, const Watch& watch);

}  // namespace melflow
