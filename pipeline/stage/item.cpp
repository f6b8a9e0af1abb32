#include "pipeline/stage/item.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pipeline/base/text.h"
#include "pipeline/stage/reach.h"
#include "pipeline/stage/stage_abilities.h"

namespace melflow {
namespace {

// Known before any node sees the item: a sink has it, or it belongs to another source.
constexpr auto is_known_before = [](const auto& loss) {
  return loss.is_kept || (loss.on_purpose && loss.at.stage == 0);
};

}  // namespace

void Stream::fail(int stage, ItemError error, std::uint64_t block) {
  lose({reach_.of(stage).lost_by_error, {stage, block}, std::move(error)});
}

void Stream::route(int stage, std::span<const int> outputs, ItemError reason, std::uint64_t block) {
  const Reach::Node& node = reach_.of(stage);
  SinkSet lost = node.sinks;
  for (const int output : outputs) lost &= node.outside[static_cast<std::size_t>(output)];
  lose({lost, {stage, block}, std::move(reason), true});
}

void Stream::keep(int stage) {
  lose({reach_.of(stage).sinks,
        {stage, 0},
        ItemError::skipped("is there from an earlier run"),
        true,
        true});
  sink_done(stage);
}

// If a node loses the same sinks several times, the loss with the earliest block counts.
void Stream::lose(Loss loss) {
  if (loss.sinks == 0 || (reach_.all() != 0 && (loss.sinks & reach_.all()) == 0)) return;
  loss.error.reason = kept_text(std::move(loss.error.reason));
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) {
    return l.at.stage == loss.at.stage && l.sinks == loss.sinks && l.is_kept == loss.is_kept;
  });
  const std::uint64_t now = lost_.load(std::memory_order_relaxed) | loss.sinks;
  if (same == losses_.end())
    losses_.push_back(std::move(loss));
  else if (loss.at.block < same->at.block)
    *same = std::move(loss);
  lost_.store(has_lost_all(now) ? kAll : now, std::memory_order_release);
}

bool Stream::has_lost_all(std::uint64_t sinks) const {
  return sinks != 0 && (reach_.all() & ~sinks) == 0;
}

// An item that is cut was not routed before, so all of its blocks pass the same nodes.
bool Stream::is_before(Place a, Place b) const {
  const Reach::Node &x = reach_.of(a.stage), &y = reach_.of(b.stage);
  if (records_.is_cut || (x.is_in_trunk && y.is_in_trunk))
    return std::pair(a.block, x.rank) < std::pair(b.block, y.rank);
  return std::pair(x.rank, a.block) < std::pair(y.rank, b.block);
}

// Whether the sinks that a report from `at` could lose are all lost to earlier reports or, with
// `by_itself`, to those from `at` too. Then the block need not have come there, so whether anything
// was reported depends on timing, and it does not count. In read > decode > {a > x, b > y}, with
// errors that cost the item both sinks x and y unless said otherwise (tests/unit/ledger_test.cpp):
//
//   reports                                  what counts, and why
//   decode block 3, decode block 1           block 1: of one node the earliest
//   decode block 2, read block 5             decode's: before the branch, the earlier block
//   a block 1, b block 0                     a's: behind the branch, the order of the plan
//   a block 1 (its branch alone), b block 0  both: x is lost to a, y to b; the first is told
//   x block 0, y block 0                     x's: sinks come after all other nodes, in their order
//   the source routes to b; a fails          the route: nothing that a does concerns the item
//   x has it from an earlier run; a fails    neither: ok, nothing behind a needs it
//   x has it from an earlier run; b fails    b's, which costs y; x keeps what it has
//   any, and the run was stopped             not run: pieces were dropped that might have said more
bool Stream::is_over(Place at, bool by_itself) const {
  std::uint64_t lost = 0, from_the_beginning = 0;
  for (const Loss& l : losses_) {
    if (is_known_before(l)) from_the_beginning |= l.sinks;
    if (l.is_kept || (by_itself ? !is_before(at, l.at) : is_before(l.at, at))) lost |= l.sinks;
  }
  const Reach::Node& node = reach_.of(at.stage);
  return lost != 0 &&
         ((node.may_lose & reach_.all() & ~lost) == 0 || (node.sinks & ~from_the_beginning) == 0);
}

// For an item lost to some sinks only, the first line decides in nearly all cases.
bool Stream::is_behind_losses(std::uint64_t sinks, int stage, std::uint64_t block) const {
  if ((reach_.of(stage).sinks & ~sinks) != 0) return false;
  const std::lock_guard lock(mutex_);
  return cancelled_ || is_over({stage, block}, true);
}

void Stream::sink_done(int stage) {
  taken_.fetch_or(reach_.of(stage).sinks, std::memory_order_acq_rel);
}

// Keeps the first warnings of each node in the order of blocks. A dropped one would never be among
// them, so the result does not depend on which came first in time.
void Stream::warn(int stage, std::string text, std::uint64_t block) {
  Remark remark{{stage, block}, kept_text(std::move(text))};
  const std::lock_guard lock(mutex_);
  const auto is_of_stage = [stage](const Remark& r) { return r.at.stage == stage; };
  const auto same = std::find_if(remarks_.begin(), remarks_.end(), [&](const Remark& r) {
    return is_of_stage(r) && r.text == remark.text;
  });
  if (same != remarks_.end()) {
    if (same->at.block <= block) return;
    remarks_.erase(same);
  }
  remarks_.insert(std::move(remark));
  const auto count = std::count_if(remarks_.begin(), remarks_.end(), is_of_stage);
  if (static_cast<std::size_t>(count) > Ledger::kMostWarnings + 1)
    remarks_.erase(std::prev(remarks_.lower_bound({{stage + 1, 0}, ""})));
}

// Returns the warnings of nodes that see the block in any case.
std::vector<Stream::Remark> Stream::remarks_that_count() const {
  std::vector<Remark> out;
  for (const Remark& r : remarks_)
    if (!is_over(r.at, true)) out.push_back(r);
  return out;
}

bool Stream::is_remarked(int stage) const {
  const std::lock_guard lock(mutex_);
  return cancelled_ ||
         std::any_of(remarks_.begin(), remarks_.end(),
                     [stage](const Remark& r) { return r.at.stage < stage; }) ||
         std::any_of(losses_.begin(), losses_.end(),
                     [stage](const Loss& l) { return l.at.stage < stage && !l.on_purpose; });
}

void Stream::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  lost_.store(kAll, std::memory_order_release);
}

// Several stages may ask for their states at once, and most streams have none. No std::call_once,
// which takes a system call.
Stream::Kept& Stream::kept(int stage) {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) kept_.resize(reach_.size());
  return kept_[static_cast<std::size_t>(stage)];
}

std::shared_ptr<const SubItem> Stream::next_sub_item(int stage, SubItem next, bool ends) {
  Kept& k = kept(stage);
  if (k.at_hand == nullptr) {
    if (k.last != nullptr) {
      next.place = k.last->place + 1;
      const bool is_of_same =
          (k.last->of ? k.last->of->place : 0) == (next.of ? next.of->place : 0);
      if (is_of_same) next.number = k.last->number + 1;
    }
    k.at_hand = std::make_shared<const SubItem>(std::move(next));
  } else if (ends && next.span) {
    SubItem whole = *k.at_hand;
    whole.span = next.span;
    k.at_hand = std::make_shared<const SubItem>(std::move(whole));
  }
  k.last = k.at_hand;
  return ends ? std::exchange(k.at_hand, nullptr) : k.at_hand;
}

// Returns losses in order. Ignores a node's loss if the block need not have reached that node,
// since whether it did depends on timing.
std::vector<const Stream::Loss*> Stream::losses_that_count() const {
  std::vector<const Loss*> out;
  for (const Loss& l : losses_)
    if (is_known_before(l) || !is_over(l.at, false)) out.push_back(&l);
  std::stable_sort(out.begin(), out.end(),
                   [this](const Loss* a, const Loss* b) { return is_before(a->at, b->at); });
  return out;
}

// The loss that decides the outcome: a failure before a skip, a skip before a route, and last a
// loss because the item belongs to another source.
const Stream::Loss& Stream::main_of(const std::vector<const Loss*>& losses) {
  const auto rank = [](const Loss* l) {
    if (l->is_kept) return 4;
    const bool is_failed = l->error.kind == ItemError::Kind::failed;
    return is_failed ? 0 : !l->on_purpose ? 1 : l->at.stage > 0 ? 2 : 3;
  };
  return **std::min_element(losses.begin(), losses.end(),
                            [&](const Loss* a, const Loss* b) { return rank(a) < rank(b); });
}

bool Stream::has_next_part() {
  while (begun_ < records_.count && ledger_.outcome(next_part()) != Outcome::open) ++begun_;
  return begun_ < records_.count;
}

std::shared_ptr<Stream> Stream::begin_part() {
  part_ = std::make_shared<Stream>(ledger_, Records{next_part(), 1, false, 0, records_.began},
                                   records_.part_cost, reach_);
  reach_.keep(*part_);
  part_is_complete_ = false;
  ++begun_;
  return part_;
}

// The last part stays, for warnings about the item at its end.
void Stream::end_part() {
  part_is_complete_ = true;
  if (!has_next_part()) return;
  part_.reset();
}

void Stream::end_last_part() {
  if (part_ == nullptr) return;
  const std::vector<const Loss*> losses = losses_that_count();
  const bool is_lost = has_lost_all(lost());
  if (!part_is_complete_ && cancelled_) part_->cancel();
  if (!losses.empty() && is_lost && !cancelled_) {
    const Loss& by = main_of(losses);
    if (part_is_complete_) {
      part_->warn(by.at.stage, "what follows it is missing: " + by.error.reason);
    } else {
      Loss of_part = by;
      of_part.at.block = 0;  // before everything reported about the part itself
      part_->lose(std::move(of_part));
    }
  } else {
    for (Remark& r : remarks_that_count()) part_->warn(r.at.stage, std::move(r.text));
  }
  part_.reset();
}

Stream::~Stream() {
  end_last_part();
  for (; has_next_part(); ++begun_) close(next_part());
}

void Stream::close(std::size_t record) {
  // Applies even if every sink has a last block: an earlier block was dropped, and a node before
  // one that failed the item might have reported something.
  if (cancelled_) return ledger_.close(record, Outcome::not_run, -1, "");
  const std::vector<const Loss*> losses = losses_that_count();
  std::uint64_t lost = 0, kept = 0;
  for (const Loss* l : losses) (l->is_kept ? kept : lost) |= l->sinks;
  lost &= ~kept;
  if (has_lost_all(lost)) {
    const Loss& by = main_of(losses);
    const bool is_skipped = by.error.kind == ItemError::Kind::skipped;
    ledger_.close(record, is_skipped ? Outcome::skipped : Outcome::failed, by.at.stage,
                  by.error.reason);
  } else if (((taken_.load() | lost) & reach_.all()) == reach_.all()) {
    std::vector<Remark> said = remarks_that_count();
    if (!losses.empty()) {
      const Loss& main = main_of(losses);
      if (main.error.kind == ItemError::Kind::failed) {
        Remark r{main.at, "is not in every output: " + main.error.reason};
        const auto at = std::upper_bound(said.begin(), said.end(), r);
        said.insert(at, std::move(r));
      }
      tell_sinks(record, losses);
    }
    Ledger::Warnings warnings;
    for (Remark& r : said)
      warnings.emplace_back(ledger_.stages().at(static_cast<std::size_t>(r.at.stage)),
                            std::move(r.text));
    if (is_timed() && (taken_.load() & ~kept) != 0)
      ledger_.note_latency(RunClock::now() - records_.began);
    ledger_.close(record, Outcome::ok, said.empty() ? -1 : said.front().at.stage,
                  Ledger::warned(warnings).reason);
  } else {
    ledger_.close(record, Outcome::failed, -1,
                  "lost on the way: not every output took it (a bug in a stage)");
  }
}

// Notifies the sinks that lost an item which others got, each of the first loss that concerns it.
void Stream::tell_sinks(std::size_t record, const std::vector<const Loss*>& losses) const {
  std::uint64_t told = 0;
  for (const Loss* l : losses)
    if (l->is_kept) told |= l->sinks;
  for (const Loss* l : losses) {
    for (std::size_t i = 0; i < reach_.sinks().size(); ++i)
      if (((l->sinks & ~told) >> i & 1) != 0 && reach_.sinks()[i] != nullptr)
        reach_.sinks()[i]->left_out(record, l->at.stage, l->error);
    told |= l->sinks;
  }
}

}  // namespace melflow
