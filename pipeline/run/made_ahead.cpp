#include "pipeline/run/made_ahead.h"

#include <algorithm>
#include <utility>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/ledger.h"

namespace melflow {
namespace {

// Ahead of the source are this many times the items of a task: it takes items that are made faster
// than one worker makes them.
constexpr std::size_t kTasksAhead = 16;
constexpr std::size_t kLeastAhead = 4;  // ranges

std::size_t range_count(const StageFaces& source) {
  if (source.ahead == nullptr || !source.ahead->makes_ahead()) return 0;
  return (source.source->count() + MadeAhead::kRange - 1) / MadeAhead::kRange;
}

}  // namespace

MadeAhead::MadeAhead(const Plan& plan, const Ledger& ledger)
    : plan_(plan),
      source_(*plan.nodes.front().faces.source),
      ledger_(ledger),
      total_(source_.count()),
      ranges_(range_count(plan.nodes.front().faces)) {}

MadeAhead::Made MadeAhead::make(std::size_t index) const {
  Made made{source_.item(index), 0, {}};
  made.cost = admission_cost(plan_, made.item.info, &made.bounds);
  return made;
}

MadeAhead::Made MadeAhead::take(std::size_t index) {
  if (ranges_.empty()) return make(index);
  const std::size_t range = index / kRange;
  if (range >= entered_) enter(range);
  std::vector<Made>& made = ranges_[range].made;
  // Those that the source makes itself, as what threw when it was prefetched.
  if (made.empty() || !made[index % kRange].item.payload) return make(index);
  return std::move(made[index % kRange]);
}

void MadeAhead::enter(std::size_t range) {
  for (std::size_t r = entered_ == 0 ? 0 : entered_ - 1; r < range; ++r) pass(ranges_[r]);
  entered_ = range + 1;
  at_.store(range, std::memory_order_relaxed);
  std::atomic<State>& state = ranges_[range].state;
  State now = State::untouched;
  if (state.compare_exchange_strong(now, State::over)) return;
  state.wait(State::being_made);
}

// Lets go of the items; where a range is still being made, its maker does that.
void MadeAhead::pass(Range& range) {
  if (range.state.exchange(State::over) != State::being_made) range.made = {};
}

// A range to be made; the number of ranges where there are enough.
std::size_t MadeAhead::claim(std::size_t ahead) {
  std::size_t claimed = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    const std::size_t at = at_.load(std::memory_order_relaxed);
    const std::size_t next = std::max(claimed, at + 1);
    if (next > at + ahead || next >= ranges_.size()) return ranges_.size();
    if (!claimed_.compare_exchange_weak(claimed, next + 1)) continue;
    State now = State::untouched;
    if (ranges_[next].state.compare_exchange_strong(now, State::being_made)) return next;
    claimed = claimed_.load(std::memory_order_relaxed);
  }
}

void MadeAhead::work_ahead(std::size_t items) noexcept {
  const std::size_t ahead = std::clamp(kTasksAhead * items / kRange, kLeastAhead, kMostAhead);
  for (std::size_t n = items / kRange + 1; n > 0; --n) {
    const std::size_t range = claim(ahead);
    if (range >= ranges_.size()) return;
    make(ranges_[range], range * kRange);
  }
}

// An error is the matter of the run once it comes to the item: it is made again then.
void MadeAhead::make(Range& range, std::size_t first) noexcept {
  try {
    for (std::size_t i = first; i < std::min(first + kRange, total_); ++i) {
      if (ledger_.outcome(i) != Outcome::open) continue;
      if (range.made.empty()) range.made.resize(kRange);
      range.made[i - first] = make(i);
    }
  } catch (...) {
  }
  State now = State::being_made;
  if (!range.state.compare_exchange_strong(now, State::made)) range.made = {};
  range.state.notify_all();
}

}  // namespace melflow
