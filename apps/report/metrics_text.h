// The figures of a run in the text format of Prometheus (text/plain, version 0.0.4). All are
// gauges, as they begin anew with each run. docs/profiling.md lists them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

struct RunMetrics {
  /// loading: a filling pass, to which the other members refer.
  enum class State { loading, running, complete, stopped, failed, not_started };
  State state = State::running;
  double began = 0;    ///< seconds since 1970
  double seconds = 0;  ///< since the run began
  Ledger::Counts files;
  std::size_t rows = 0, bytes_read = 0;
  std::size_t reserved = 0, resident = 0;  ///< [bytes]
  double cpu_seconds = 0;                  ///< of the process, since the run began
  struct Node {
    std::string name;
    double busy = 0;          ///< [s]
    std::size_t waiting = 0;  ///< items in the queue before it
  };
  std::vector<Node> nodes;
};

/// Takes over how far a run is. Where no graph runs, rows, bytes and nodes stay as they were.
void update(RunMetrics& metrics, const Progress& progress, const RunSample& sample);
/// Takes over how it ended.
void update(RunMetrics& metrics, const RunReport& report, const Plan& plan);

/// `run`: the label of all figures, so that files of several runs can be read together.
std::string metrics_text(const RunMetrics& metrics, const std::string& run);

}  // namespace melflow
