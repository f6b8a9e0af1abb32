// Prefetches source items. Only one worker at a time can be at the source's node, so with enough
// workers the time that an item takes there limits the whole run; asking the system for a file's
// size alone takes a microsecond. So a worker that has just made a task for the graph also makes as
// many items further ahead, while another worker is at the source already.
//
// Items are made in ranges, each by the thread that claims it first, and each item once. The source
// makes the items of a range itself when no thread has claimed it, and waits when a worker is
// making it; that worker needs nothing of the graph to finish.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/stage/stage_abilities.h"

namespace melflow {

struct Plan;
class Ledger;

class MadeAhead {
 public:
  static constexpr std::size_t kRange = 32;       // items
  static constexpr std::size_t kMostAhead = 128;  // ranges

  /// Items whose records in the ledger are closed are skipped.
  MadeAhead(const Plan& plan, const Ledger& ledger);

  struct Made {
    SourceItem item;
    std::size_t cost = 0;             ///< bytes of the budget that it needs
    std::vector<std::size_t> bounds;  ///< the most that each node may give of it [bytes]
  };
  /// Takes the item with this index. One call at a time, with growing indices. Throws what item()
  /// throws.
  Made take(std::size_t index);
  /// Makes `items` items ahead, in whole ranges, unless enough are made already. Called by a worker
  /// whose task has as many. From any thread. Throws nothing.
  void work_ahead(std::size_t items) noexcept;

 private:
  enum class State : std::uint8_t { untouched, being_made, made, over };
  // `made` belongs to the thread that set being_made, then to the one that takes.
  struct Range {
    std::atomic<State> state{State::untouched};
    std::vector<Made> made;
  };

  [[nodiscard]] Made make(std::size_t index) const;
  void make(Range& range, std::size_t first) noexcept;
  void enter(std::size_t range);
  static void pass(Range& range);
  [[nodiscard]] std::size_t claim(std::size_t ahead);

  const Plan& plan_;
  SourceStage& source_;
  const Ledger& ledger_;
  const std::size_t total_;
  std::vector<Range> ranges_;            // none where the source does not make ahead
  std::size_t entered_ = 0;              // ranges below this one are over, but for the last of them
  std::atomic<std::size_t> at_{0};       // the range that is taken from
  std::atomic<std::size_t> claimed_{0};  // ranges below this one are claimed, or over
};

}  // namespace melflow
