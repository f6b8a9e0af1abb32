// Makes the tasks of the source: which source items go together, and making items before it is
// their turn.
//
// A task should take much longer than passing it from node to node, so several small files go
// together: as many as the plan says or, where that is left to the run, as take some 100 us on a
// worker, which is what oneTBB advises, or longer with more than 25 files.
//
// Only one worker at a time can be at the source's node, so with enough workers the time that an
// item takes there limits the whole run; asking the system for a file's size alone takes a
// microsecond. So a worker that has just made a task prefetches as many items, while another worker
// is at the source already. Items are prefetched in ranges, each by the thread that claims it
// first, and each item once. The source makes the items of a range itself when no thread has
// claimed it, and waits while a worker is making it; that worker needs nothing of the graph to
// finish.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/run/work.h"
#include "pipeline/stage/stage_abilities.h"

namespace melflow {

class TaskGraph;

/// Threads: make() one call at a time (the source's node has a concurrency of 1); prefetch() and
/// is_exhausted() from any; not_kept() after the run.
/// Lifetime: as its TaskGraph; the source outlives it.
class SourceFeed {
 public:
  static constexpr std::size_t kRange = 32;       ///< items that are prefetched together
  static constexpr std::size_t kMostAhead = 128;  ///< ranges

  explicit SourceFeed(TaskGraph& graph);

  /// Makes the next task into `work`: its index, Progress::out and Work::made; without an item when
  /// there are no more. One call at a time. Throws what SourceStage::item() throws.
  void make(Work& work);
  /// Whether all items have been made.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_.load(); }
  /// Prefetches about `items` items, unless enough are there. Called by a worker that has just made
  /// a task of so many. From any thread.
  void prefetch(std::size_t items) noexcept;
  /// After the run: the warning that tasks had fewer files than files_per_task says, and why; "" if
  /// they had as many.
  [[nodiscard]] std::string not_kept() const;

 private:
  struct Made {
    SourceItem item;
    std::size_t cost = 0;             // of the budget [bytes]
    std::vector<std::size_t> bounds;  // the most bytes that each node may give of it
  };
  enum class State : std::uint8_t { untouched, being_made, made, over };
  // `made` belongs to the thread that set being_made until it is done, then to the source's.
  struct Range {
    std::atomic<State> state{State::untouched};
    std::vector<Made> made;
  };

  void note_cut(std::size_t files, std::size_t cost);
  void skip_done();
  void measure();
  [[nodiscard]] std::size_t most() const;
  [[nodiscard]] Made make_one(std::size_t index) const;
  [[nodiscard]] Made take(std::size_t index);
  void enter(std::size_t range);
  static void pass(Range& range);
  [[nodiscard]] std::size_t claim(std::size_t ahead);
  void make_range(std::size_t range) noexcept;

  TaskGraph& graph_;
  SourceStage& source_;
  const std::size_t total_;
  const std::size_t done_before_;      // items whose records were closed before the start
  const UnitesSources* const unites_;  // where there are several sources
  const std::size_t fixed_;            // files a task; 0: as measured
  const double task_seconds_;          // what a task should take, where that is measured
  const std::size_t room_;             // for the memory of one task [bytes]
  std::size_t next_ = 0;
  std::size_t last_files_ = 0;  // of the last task
  std::atomic<bool> is_exhausted_{false};
  std::optional<Made> next_item_;  // made, but did not fit into the last task
  // Of tasks whose memory did not suffice for the intended number of files: the most files in one,
  // and the most memory per file [bytes].
  std::size_t most_cut_ = 0, dearest_ = 0;

  // The cost of a file: worker seconds per unit of weight.
  std::size_t made_ = 0, weight_ = 0;
  std::size_t measure_at_ = 16;    // files made
  double seconds_per_weight_ = 0;  // 0: not known yet

  // Prefetching.
  std::vector<Range> ranges_;            // none where the source cannot make items ahead
  std::size_t entered_ = 0;              // ranges below this one are over, but for the last of them
  std::atomic<std::size_t> at_{0};       // the range that is taken from
  std::atomic<std::size_t> claimed_{0};  // ranges below this one are claimed, or over
};

}  // namespace melflow
