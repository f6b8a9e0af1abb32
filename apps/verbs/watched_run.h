// A run that shows its progress on stderr and can be stopped by Ctrl-C.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "apps/profile/series.h"
#include "apps/report/terminal.h"
#include "apps/verbs/metrics_file.h"
#include "pipeline/run/runner.h"

namespace melflow {

struct Watch {
  ProgressDisplay::Mode progress = ProgressDisplay::suitable_mode();
  double every = ProgressDisplay::kLineEvery;  ///< seconds between progress lines
  bool quiet = false;                          ///< prints nothing when stopped
  double seconds = 0;                          ///< no files are begun after this time; 0: no limit
  bool with_series = false;
  MetricsFile* metrics = nullptr;            ///< gets the figures; null: they are not written
  double metrics_every = 0;                  ///< seconds between its writes
  std::atomic<bool>* interrupted = nullptr;  ///< also set when a signal comes; null: nobody asks
  std::function<void()> leave = {};          ///< called where a second signal ends the process
};

struct WatchedRun {
  RunReport report;
  bool interrupted = false;  ///< whether a signal stopped it
  Series series;             ///< if it was requested
};

inline const Watch kQuietly{.progress = ProgressDisplay::Mode::none, .quiet = true};

WatchedRun run_watched(Runner& runner, const Watch& watch);

/// Runs without progress. Prints the warnings and, where the run did not complete, why; `stopped`:
/// what is printed where it was stopped.
struct QuietRun {
  RunReport report;
  std::optional<int> failure;  ///< the exit status of a run that did not complete
};
QuietRun run_quietly(Runner& runner, const char* stopped);

}  // namespace melflow
