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

void Stream::lose(Loss loss) {
  const std::lock_guard lock(mutex_);
  std::uint64_t before = 0;
  for (const Loss& l : losses_) before |= l.sinks;
  const std::uint64_t now = before | loss.sinks;
  if (((now & ~before) & reach_.all()) == 0 && !(losses_.empty() && now == kAll)) return;
  loss.sinks &= ~before;
  losses_.push_back(std::move(loss));
  if (!cancelled_)
    lost_.store((now & reach_.all()) == reach_.all() ? kAll : now, std::memory_order_release);
}

bool Stream::has_all_of(std::uint64_t sinks, int stage) const {
  const std::uint64_t wanted = reach_.of(stage).sinks;
  return (sinks & wanted) == wanted;
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

bool Stream::is_remarked() const {
  const std::lock_guard lock(mutex_);
  return !losses_.empty() || cancelled_ || !warning_.empty();
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
// branches told first being chance.
const Stream::Loss& Stream::main_loss() const {
  const auto rank = [](const Loss& l) {
    return std::pair(l.error.kind == ItemError::Kind::failed ? 0 : l.on_purpose ? 2 : 1, l.stage);
  };
  return *std::min_element(losses_.begin(), losses_.end(),
                           [&](const Loss& a, const Loss& b) { return rank(a) < rank(b); });
}

Stream::~Stream() {
  std::uint64_t lost = 0;
  for (const Loss& l : losses_) lost |= l.sinks;
  if (!losses_.empty() && (lost & reach_.all()) == reach_.all()) {
    const Loss& by = main_loss();
    const bool is_skipped = by.error.kind == ItemError::Kind::skipped;
    ledger_.close(index_, is_skipped ? Outcome::skipped : Outcome::failed, by.stage,
                  by.error.reason);
  } else if (cancelled_) {
    // Even when every sink has had a last block: an earlier one was dropped.
    ledger_.close(index_, Outcome::not_run, -1, "");
  } else if (((taken_.load() | lost) & reach_.all()) == reach_.all()) {
    if (!losses_.empty()) {
      const Loss& by = main_loss();
      if (by.error.kind == ItemError::Kind::failed && warning_.empty()) {
        warning_ = "is not in every output: " + by.error.reason;
        warned_by_ = by.stage;
      }
      tell_sinks();
    }
    ledger_.close(index_, Outcome::ok, warning_.empty() ? -1 : warned_by_, warning_);
  } else {
    ledger_.close(index_, Outcome::failed, -1,
                  "lost on the way: not every output took it (a defect of a stage)");
  }
}

// Of what the others got.
void Stream::tell_sinks() const {
  for (const Loss& l : losses_)
    for (std::size_t i = 0; i < reach_.sinks().size(); ++i)
      if ((l.sinks >> i & 1) != 0 && reach_.sinks()[i] != nullptr)
        reach_.sinks()[i]->left_out(index_, l.stage, l.error);
}

}  // namespace melflow
