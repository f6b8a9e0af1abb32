#include "pipeline/run/source_feed.h"

#include <algorithm>
#include <utility>

#include "pipeline/plan/plan_memory.h"
#include "pipeline/run/task_graph.h"

namespace melflow {
namespace {

constexpr double kTaskSeconds = 100e-6;
// The source makes tasks one after the other, a few microseconds each, so many workers are kept
// busy only by longer tasks.
constexpr double kTaskSecondsPerWorker = 4e-6;

// An empty file costs about as much as this many bytes do.
constexpr std::size_t kWeightOfFile = 4096;

// The last tasks are small, or one worker would still be busy with its own when all others are
// done.
constexpr std::size_t kTasksLeftPerWorker = 4;

// Items are prefetched for this many tasks: the source takes prefetched items faster than one
// worker makes them.
constexpr std::size_t kTasksAhead = 16;
constexpr std::size_t kLeastAhead = 4;  // ranges

std::size_t range_count(const StageFaces& source) {
  if (source.ahead == nullptr || !source.ahead->makes_ahead()) return 0;
  return (source.source->count() + SourceFeed::kRange - 1) / SourceFeed::kRange;
}

}  // namespace

std::string SourceFeed::not_kept() const {
  if (most_cut_ == 0) return {};
  const Plan& plan = graph_.plan();
  return fewer_together(plan, most_cut_, dearest_,
                        plan.host_memory - graph_.context().budget->capacity());
}

SourceFeed::SourceFeed(TaskGraph& graph)
    : graph_(graph),
      source_(*graph.plan().nodes.front().faces.source),
      total_(source_.count()),
      done_before_(graph.context().ledger.counts().closed()),
      unites_(graph.plan().sources.empty() ? nullptr : graph.plan().nodes.front().faces.unites),
      fixed_(static_cast<std::size_t>(graph.plan().nodes.front().files_per_task)),
      task_seconds_(std::max(kTaskSeconds, kTaskSecondsPerWorker * graph.plan().workers)),
      room_(task_memory(graph.plan(), graph.context().budget->capacity())),
      ranges_(range_count(graph.plan().nodes.front().faces)) {
  skip_done();
}

void SourceFeed::skip_done() {
  const Ledger& ledger = graph_.context().ledger;
  while (done_before_ > 0 && next_ < total_ && ledger.outcome(next_) != Outcome::open) ++next_;
  if (next_ >= total_) is_exhausted_ = true;
}

void SourceFeed::make(Work& work) {
  if (next_ >= total_) return;
  if (fixed_ == 0 && made_ >= measure_at_) measure();
  const std::size_t files = most();
  std::size_t weight = 0;
  work.index = next_;
  std::vector<Item>& out = work.progress.out;
  work.made = std::make_unique<Work::Made>();
  std::vector<Work::Made::One>& each = work.made->each;
  out.reserve(std::min(files, last_files_));
  each.reserve(std::min(files, last_files_));
  // Their indices follow each other.
  std::size_t end = next_;
  while (next_ < total_ && out.size() < files && next_ == end) {
    Made made = next_item_ ? *std::exchange(next_item_, std::nullopt) : take(next_);
    const SourceItem& item = made.item;
    const std::size_t cost = made.cost;
    weight += item.info.bytes + kWeightOfFile;
    const bool fits =
        work.made->cost + cost <= room_ &&
        (fixed_ > 0 || static_cast<double>(weight) * seconds_per_weight_ <= task_seconds_);
    if (!out.empty() && !fits) {
      if (fixed_ > 0) note_cut(out.size(), work.made->cost + cost);
      next_item_ = std::move(made);
      break;
    }
    weight_ += item.info.bytes + kWeightOfFile;
    each.push_back({cost, item.records, std::move(made.bounds)});
    work.made->cost += cost;
    out.push_back({nullptr, std::move(made.item.payload), item.info.bytes, 0});
    if (unites_ != nullptr)
      out.back().output = output_number(0, static_cast<int>(unites_->source_of(next_)));
    ++made_;
    next_ = end += item.records;
    skip_done();
  }
  work.request.record = work.index;
  if (!each.empty()) work.request.records = each.front().records;
  last_files_ = out.size();
}

void SourceFeed::note_cut(std::size_t files, std::size_t cost) {
  most_cut_ = std::max(most_cut_, files);
  dearest_ = std::max(dearest_, cost / (files + 1));
}

std::size_t SourceFeed::most() const {
  if (fixed_ > 0) return fixed_;
  if (seconds_per_weight_ == 0) return 1;
  const std::size_t tasks = kTasksLeftPerWorker * static_cast<std::size_t>(graph_.plan().workers);
  return std::clamp<std::size_t>((total_ - next_) / tasks, 1, NodeOptions::kMostFilesOfAuto);
}

// Divides the workers' time until now by the number of files that have ended. Files under way make
// these look dearer than they are, so the first tasks are small.
void SourceFeed::measure() {
  measure_at_ = made_ + std::max<std::size_t>(16, made_ / 8);
  const std::size_t closed = graph_.context().ledger.counts().closed() - done_before_;
  if (closed == 0) return;
  double busy = 0;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& n : graph_.nodes())
    if (n->is_on_workers()) busy += n->queue().snapshot(now).time.busy;
  const double share = static_cast<double>(closed) / static_cast<double>(made_);
  seconds_per_weight_ = busy / (static_cast<double>(weight_) * std::min(share, 1.0));
}

// ---- prefetching --------------------------------------------------------------------------------

SourceFeed::Made SourceFeed::make_one(std::size_t index) const {
  Made made{source_.item(index), 0, {}};
  // A file that has grown since the run began must not ask for more than the largest file may take.
  made.cost = std::min(admission_cost(graph_.plan(), made.item.info, &made.bounds),
                       graph_.plan().largest_block);
  return made;
}

SourceFeed::Made SourceFeed::take(std::size_t index) {
  if (ranges_.empty()) return make_one(index);
  const std::size_t range = index / kRange;
  if (range >= entered_) enter(range);
  std::vector<Made>& made = ranges_[range].made;
  // Not prefetched, or making it threw: then the source makes it now, and throws for itself.
  if (made.empty() || !made[index % kRange].item.payload) return make_one(index);
  return std::move(made[index % kRange]);
}

void SourceFeed::enter(std::size_t range) {
  for (std::size_t r = entered_ == 0 ? 0 : entered_ - 1; r < range; ++r) pass(ranges_[r]);
  entered_ = range + 1;
  at_.store(range, std::memory_order_relaxed);
  std::atomic<State>& state = ranges_[range].state;
  State now = State::untouched;
  if (state.compare_exchange_strong(now, State::over)) return;
  state.wait(State::being_made);
}

// Lets go of the items; where a range is still being made, its maker does that.
void SourceFeed::pass(Range& range) {
  if (range.state.exchange(State::over) != State::being_made) range.made = {};
}

// Claims the next range to be made and returns its index; ranges_.size() if enough are made or
// claimed.
std::size_t SourceFeed::claim(std::size_t ahead) {
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

void SourceFeed::prefetch(std::size_t items) noexcept {
  const std::size_t ahead = std::clamp(kTasksAhead * items / kRange, kLeastAhead, kMostAhead);
  for (std::size_t n = items / kRange + 1; n > 0; --n) {
    const std::size_t range = claim(ahead);
    if (range >= ranges_.size()) return;
    make_range(range);
  }
}

// An error here is dropped: the source makes the item again when its turn comes, and then throws.
void SourceFeed::make_range(std::size_t number) noexcept {
  Range& range = ranges_[number];
  const std::size_t first = number * kRange;
  try {
    for (std::size_t i = first; i < std::min(first + kRange, total_); ++i) {
      if (graph_.context().ledger.outcome(i) != Outcome::open) continue;
      if (range.made.empty()) range.made.resize(kRange);
      range.made[i - first] = make_one(i);
    }
  } catch (...) {
  }
  State now = State::being_made;
  if (!range.state.compare_exchange_strong(now, State::made)) range.made = {};
  range.state.notify_all();
}

}  // namespace melflow
