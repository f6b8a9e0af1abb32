// The report of a run.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/duration_histogram.h"
#include "pipeline/base/process_usage.h"
#include "pipeline/stage/ledger.h"
#include "pipeline/stage/run_context.h"

namespace melflow {

/// The use of a stage's time, in seconds times concurrency: the five add up to graph_seconds x
/// concurrency.
struct StageTime {
  double busy = 0;            ///< processing items
  double waiting_input = 0;   ///< waiting for an item
  double blocked_output = 0;  ///< waiting because a later queue or the memory budget is full
  double waiting_core = 0;    ///< ready, but without a free worker
  double idle_after_end = 0;  ///< idle after its last item
  [[nodiscard]] double total() const {
    return busy + waiting_input + blocked_output + waiting_core + idle_after_end;
  }
};

/// Durations of a stage's calls [s]; small files that travel together share their time.
struct ServiceReport {
  std::size_t calls = 0;
  double p50 = 0, p90 = 0, p99 = 0;  ///< percentiles, accurate to 3.2 %
  double greatest = 0;
};

/// Percentiles of these durations.
ServiceReport service_report(const DurationHistogram& durations);

/// A long stay in a stage: of one source item, or of `files` from `index` on as a group.
struct SlowVisit {
  double seconds = 0;
  std::size_t index = 0;
  std::size_t files = 1;
};

/// How a configuration can change a node's concurrency.
struct ConcurrencyOption {
  bool is_settable = true;       ///< whether the node was written
  bool follows_workers = false;  ///< equals the number of workers because none was set
  int most = 0;                  ///< the most that the stage allows; 0: any number
};

struct StageReport {
  std::string name, stage;
  int concurrency = 1;
  ConcurrencyOption option;
  int peak_concurrency = 0;
  std::size_t items_in = 0, items_out = 0;
  std::size_t bytes_in = 0, bytes_out = 0;
  std::size_t rows_in = 0, rows_out = 0;
  std::size_t files_in = 0;  ///< source items whose first block was taken
  bool on_workers = true;    ///< else on dedicated threads
  StageTime time;
  double cpu_seconds = 0;  ///< processor time; sampled for a stage on the workers
  ServiceReport service;
  std::vector<SlowVisit> slowest;  ///< the longest first
  std::vector<std::pair<std::string, Value>> summary;
};

struct EdgeReport {
  std::string from, to;
  int capacity = 1;  ///< size of the queue
  std::size_t max_depth = 0;
  double mean_depth = 0;  ///< averaged over the time until the receiving stage ended
  /// With `start_at`: how many items waited when the receiving stage began, and the time from the
  /// first item until then.
  std::size_t start_depth = 0;
  double start_wait_seconds = 0;
};

/// An edge of the flow graph, by names of nodes of the plan.
struct Joint {
  std::string from, to;
  const char* leads_to = "";  ///< oneTBB's class of the node `to`
};

/// A source item that stayed long in a stage.
struct SlowFile {
  std::string name, stage;  ///< stage: name of the node
  SlowVisit visit;
};

struct RunReport {
  Ending ending = Ending::complete;
  std::string error;  ///< why a failed run failed
  std::chrono::steady_clock::time_point began, graph_began;
  double wall_seconds = 0;
  double graph_seconds = 0;    ///< while the stages worked; their times add up to it
  double filling_seconds = 0;  ///< before that, during a filling pass
  double start_seconds = 0;    ///< before both: listing files, opening outputs
  double finish_seconds = 0;   ///< after the graph: closing and checking outputs
  /// From the start until the first item had passed a sink; 0: none did.
  double first_row_seconds = 0;
  int workers = 1;
  int cores = 1;  ///< that the process may use
  Ledger::Counts counts;
  std::size_t kept = 0;  ///< part of `ok`: items that an update found done
  std::vector<StageReport> stages;
  std::vector<EdgeReport> edges;
  std::vector<Joint> joints;  ///< all edges of the flow graph, in the order of creation
  std::size_t memory_budget = 0;
  std::size_t memory_peak = 0;     ///< the most that was reserved at once
  std::size_t memory_index = 0;    ///< the part of the peak for the index of source items
  double memory_wait_seconds = 0;  ///< time in which items waited for the budget
  /// Meanwhile: the shares of the reserved memory that was for items in a node or its queue, in the
  /// order of the plan; empty if nothing waited.
  std::vector<std::pair<std::string, double>> memory_holders;
  /// A budget that would suffice for all items that every stage may hold or collect, given the item
  /// sizes seen; 0: not known.
  std::size_t memory_wanted = 0;
  std::size_t resident_peak = 0;  ///< peak of the process's resident memory (VmHWM)
  ProcessUsage usage;             ///< of the whole process during the run
  /// How long threads of the process were ready but had no core while the stages worked: other
  /// threads, of this run or of other programs, used the cores.
  double core_wait_seconds = 0;
  double graph_cpu_seconds = 0;  ///< processor time of the process while the stages worked
  /// When the last files were done, among those in flight when the source had no more [s after the
  /// stages began]; ascending, at most 256.
  std::vector<double> last_closings;
  /// How long files were in the graph, from their admission until all sinks had their rows [s]; of
  /// the first 64, and of one in 16 of the others.
  ServiceReport latency;
  std::size_t bytes_read = 0;     ///< yielded by the nodes after the source
  std::vector<SlowFile> slowest;  ///< over all stages, the longest first
  std::vector<std::string> warnings;
};

/// Fills `slowest` from the stages' lists; `name(i)` returns the name of source item i.
void name_slowest(RunReport& report, const std::function<std::string(std::size_t)>& name);
/// Marks a run as failed if its accounts do not balance.
void check_accounts(RunReport& report);

/// A source item that is not ok, or ok with a warning: its index, name and record.
struct Remark {
  std::size_t index = 0;
  std::string name;
  Ledger::Entry entry;
};

/// The remarks of a run, in the order of its items. Each is made when it is asked for, since names
/// and reasons of all could take far more memory than the run; so the run must outlive them.
class Remarks {
 public:
  using Make = std::function<Remark(std::size_t index)>;
  Remarks() = default;
  Remarks(std::vector<std::size_t> items, Make make)
      : items_(std::move(items)), make_(std::move(make)) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Remark;
    using difference_type = std::ptrdiff_t;
    using pointer = const Remark*;
    using reference = Remark;
    Iterator(const Remarks* of, std::size_t at) : of_(of), at_(at) {}
    Remark operator*() const { return (*of_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Remarks* of_;
    std::size_t at_;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, items_.size()}; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] Remark operator[](std::size_t i) const { return make_(items_.at(i)); }
  /// Those that `is_wanted`.
  template <class IsWanted>
  [[nodiscard]] Remarks where(const IsWanted& is_wanted) const {
    Remarks out({}, make_);
    for (const std::size_t item : items_)
      if (is_wanted(make_(item))) out.items_.push_back(item);
    return out;
  }
  /// All of them, to be kept.
  operator std::vector<Remark>() const {  // NOLINT(google-explicit-constructor)
    std::vector<Remark> out;
    for (Remark r : *this) out.push_back(std::move(r));
    return out;
  }

 private:
  std::vector<std::size_t> items_;
  Make make_;
};

}  // namespace melflow
