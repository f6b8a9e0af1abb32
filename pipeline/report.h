// What a run measured.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/ledger.h"
#include "pipeline/run_context.h"

namespace melflow {

/// Where a stage's time went, in seconds of its concurrency: the five add up to graph_seconds x concurrency.
struct StageTime {
  double busy = 0;            ///< processing
  double waiting_input = 0;   ///< nothing to do yet
  double blocked_output = 0;  ///< the next queue is full, or the memory budget is
  double waiting_core = 0;    ///< ready, but no worker free
  double idle_after_end = 0;  ///< all its work is done
  [[nodiscard]] double total() const {
    return busy + waiting_input + blocked_output + waiting_core + idle_after_end;
  }
};

struct StageReport {
  std::string name, stage;
  int concurrency = 1;
  int peak_concurrency = 0;
  std::size_t items_in = 0, items_out = 0;
  std::size_t bytes_in = 0, bytes_out = 0;
  std::size_t rows_in = 0, rows_out = 0;
  StageTime time;
  std::vector<std::pair<std::string, Value>> summary;
};

struct EdgeReport {
  std::string from, to;
  int capacity = 1;  ///< places; of an auto queue at the end
  int greatest_capacity = 1;
  bool adapts = false;  ///< an auto queue
  std::size_t max_depth = 0;
  double mean_depth = 0;  ///< over the time until the receiving stage ended
  /// Where the receiving stage waited for items (`start_at`): how many there were when it began, and
  /// how long after the first one.
  std::size_t start_depth = 0;
  double start_wait_seconds = 0;
};

/// An edge of the flow graph: names of nodes of the plan, `.waiting` and `.places` for what is before
/// them.
struct Joint {
  std::string from, to;
  const char* leads_to = "";  ///< oneTBB's name of the class
};

struct RunReport {
  Ending ending = Ending::complete;
  std::string error;  ///< why a failed run failed
  double wall_seconds = 0;
  double graph_seconds = 0;    ///< part of it: the stages at work; what their times add up to
  double filling_seconds = 0;  ///< part of it, too: the filling pass before that
  int workers = 1;
  Ledger::Counts counts;
  std::vector<StageReport> stages;
  std::vector<EdgeReport> edges;
  std::vector<Joint> joints;  ///< what oneTBB was told, in that order
  std::size_t memory_budget = 0;
  std::size_t memory_peak = 0;     ///< the most that was promised at once
  std::size_t memory_index = 0;    ///< part of the peak: the index of source items
  double memory_wait_seconds = 0;  ///< reading waited for the budget
  std::size_t resident_peak = 0;   ///< VmHWM
  std::vector<std::string> warnings;
};

/// For every source item that is not plainly ok, in order: its index, name and entry.
struct Remark {
  std::size_t index = 0;
  std::string name;
  Ledger::Entry entry;
};

}  // namespace melflow
