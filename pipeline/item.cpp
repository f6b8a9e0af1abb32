#include "pipeline/item.h"

#include <algorithm>
#include <utility>

#include "pipeline/reach.h"
#include "pipeline/stage_abilities.h"

namespace melflow {
void Stream::fail(int stage, ItemError error) {
  const bool is_known = stage >= 0 && static_cast<std::size_t>(stage) < reach_.size();
  lose({is_known ? reach_.of(stage).lost_by_error : kAll, stage, std::move(error)});
}

void Stream::route(int stage, int output, ItemError reason) {
  const Reach::Node& node = reach_.of(stage);
  lose({output < 0 ? node.sinks : node.outside[static_cast<std::size_t>(output)], stage,
        std::move(reason), true});
}

void Stream::keep(int stage) {
  lose({reach_.of(stage).sinks, stage, ItemError::skipped("is there from an earlier run"), true,
        true});
  sink_done(stage);
}

void Stream::lose(Loss loss) {
  const std::lock_guard lock(mutex_);
  std::uint64_t before = 0;
  for (const Loss& l : losses_) before |= l.sinks;
  const std::uint64_t now = before | loss.sinks;
  if (((now & ~before) & reach_.all()) == 0 && !(losses_.empty() && now == kAll) &&
      !records_.is_cut)
    return;
  loss.sinks &= ~before;
  const bool ends_it = !records_.is_cut || loss.on_purpose || loss.stage < 0;
  losses_.push_back(std::move(loss));
  if (!cancelled_ && ends_it)
    lost_.store((now & reach_.all()) == reach_.all() ? kAll : now, std::memory_order_release);
}

bool Stream::has_all_of(std::uint64_t sinks, int stage) const {
  const std::uint64_t wanted = reach_.of(stage).sinks;
  return (sinks & wanted) == wanted;
}

// Blocks that had left the stage before it failed are whole.
bool Stream::is_before_a_loss(int stage) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(losses_.begin(), losses_.end(),
                     [stage](const Loss& l) { return stage <= l.stage; });
}

void Stream::sink_done(int stage) {
  taken_.fetch_or(reach_.of(stage).sinks, std::memory_order_acq_rel);
}

void Stream::warn(int stage, std::string text) {
  const std::lock_guard lock(mutex_);
  if (failed() || !warning_.empty()) return;
  warning_ = std::move(text);
  warned_by_ = stage;
}

// In place of what was said of the part itself, since chance says which of both came first.
void Stream::remark_on_item(int stage, std::string text) {
  const std::lock_guard lock(mutex_);
  warning_ = std::move(text);
  warned_by_ = stage;
}

bool Stream::is_remarked() const {
  const std::lock_guard lock(mutex_);
  return cancelled_ || !warning_.empty() ||
         !std::all_of(losses_.begin(), losses_.end(), [](const Loss& l) { return l.is_kept; });
}

void Stream::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  lost_.store(kAll, std::memory_order_release);
}

// Several stages may ask for theirs at once, and most streams have none.
std::unique_ptr<StageState>& Stream::state(int stage) {
  std::call_once(has_states_, [this] { states_.resize(reach_.size()); });
  return states_[static_cast<std::size_t>(stage)];
}

// What is said of the whole: a failure before a skip, and either before a route, which of two
// branches told first being chance; last that it is of one of several sources. Of an item that is cut the last stage's, which has the earliest
// block: whether a stage before it came as far as to fail is chance.
const Stream::Loss& Stream::main_loss() const {
  if (records_.is_cut)
    return *std::max_element(losses_.begin(), losses_.end(),
                             [](const Loss& a, const Loss& b) { return a.stage < b.stage; });
  const auto rank = [](const Loss& l) {
    const bool is_failed = l.error.kind == ItemError::Kind::failed;
    return std::pair(is_failed ? 0 : !l.on_purpose ? 1 : l.stage > 0 ? 2 : 3, l.stage);
  };
  return *std::min_element(losses_.begin(), losses_.end(),
                           [&](const Loss& a, const Loss& b) { return rank(a) < rank(b); });
}

bool Stream::has_next_part() {
  while (begun_ < records_.count && ledger_.outcome(next_part()) != Outcome::open) ++begun_;
  return begun_ < records_.count;
}

std::shared_ptr<Stream> Stream::begin_part() {
  part_ = std::make_shared<Stream>(ledger_, Records{next_part()}, records_.part_cost, reach_);
  reach_.keep(*part_);
  part_is_complete_ = false;
  ++begun_;
  return part_;
}

// The last one stays, for what is said of the item at its end.
void Stream::end_part() {
  part_is_complete_ = true;
  if (!has_next_part()) return;
  part_.reset();
}

void Stream::end_last_part() {
  if (part_ == nullptr) return;
  if (!warning_.empty()) part_->remark_on_item(warned_by_, warning_);
  if (!part_is_complete_ && cancelled_) part_->cancel();
  if (!losses_.empty()) {
    const Loss& by = main_loss();
    if (part_is_complete_)
      part_->remark_on_item(by.stage, "what follows it is missing: " + by.error.reason);
    else
      part_->lose(by);
  }
  part_.reset();
}

Stream::~Stream() {
  end_last_part();
  for (; has_next_part(); ++begun_) close(next_part());
}

void Stream::close(std::size_t record) {
  std::uint64_t lost = 0;
  for (const Loss& l : losses_)
    if (!l.is_kept) lost |= l.sinks;
  if (!losses_.empty() && (lost & reach_.all()) == reach_.all()) {
    const Loss& by = main_loss();
    const bool is_skipped = by.error.kind == ItemError::Kind::skipped;
    ledger_.close(record, is_skipped ? Outcome::skipped : Outcome::failed, by.stage,
                  by.error.reason);
  } else if (cancelled_) {
    // Even when every sink has had a last block: an earlier one was dropped.
    ledger_.close(record, Outcome::not_run, -1, "");
  } else if (((taken_.load() | lost) & reach_.all()) == reach_.all()) {
    if (!losses_.empty()) {
      const Loss& by = main_loss();
      if (by.error.kind == ItemError::Kind::failed && warning_.empty()) {
        warning_ = "is not in every output: " + by.error.reason;
        warned_by_ = by.stage;
      }
      tell_sinks(record);
    }
    ledger_.close(record, Outcome::ok, warning_.empty() ? -1 : warned_by_, warning_);
  } else {
    ledger_.close(record, Outcome::failed, -1,
                  "lost on the way: not every output took it (a defect of a stage)");
  }
}

// Of what the others got.
void Stream::tell_sinks(std::size_t record) const {
  for (const Loss& l : losses_)
    for (std::size_t i = 0; !l.is_kept && i < reach_.sinks().size(); ++i)
      if ((l.sinks >> i & 1) != 0 && reach_.sinks()[i] != nullptr)
        reach_.sinks()[i]->left_out(record, l.stage, l.error);
}

}  // namespace melflow
