#include "pipeline/item.h"

namespace melflow {

void Stream::fail(int stage, ItemError error) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  stage_ = stage;
  failed_.store(true, std::memory_order_release);
}

void Stream::warn(int stage, std::string text) {
  const std::lock_guard lock(mutex_);
  if (error_ || !warning_.empty()) return;
  warning_ = std::move(text);
  stage_ = stage;
}

bool Stream::is_remarked() const {
  const std::lock_guard lock(mutex_);
  return error_ || cancelled_ || !warning_.empty();
}

void Stream::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  failed_.store(true, std::memory_order_release);
}

// Several stages may ask for theirs at once, and most streams have none.
std::unique_ptr<StageState>& Stream::state(int stage) {
  std::call_once(has_states_, [this] { states_.resize(stages_); });
  return states_[static_cast<std::size_t>(stage)];
}

Stream::~Stream() {
  if (error_) {
    const Outcome outcome =
        error_->kind == ItemError::Kind::skipped ? Outcome::skipped : Outcome::failed;
    ledger_.close(index_, outcome, stage_, error_->reason);
  } else if (cancelled_) {
    // Even when every sink has had a last block: an earlier one was dropped.
    ledger_.close(index_, Outcome::not_run, -1, "");
  } else if (sinks_done_.load() == sinks_) {
    ledger_.close(index_, Outcome::ok, warning_.empty() ? -1 : stage_, warning_);
  } else {
    ledger_.close(index_, Outcome::failed, -1,
                  "lost on the way: not every output took it (a defect of a stage)");
  }
}

}  // namespace melflow
