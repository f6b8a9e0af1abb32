// The outcome of every source item for one sink. It is the run's, except for items that other sinks
// took and this one did not get, or that this one has from an earlier run.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "pipeline/base/result.h"
#include "pipeline/stage/ledger.h"

namespace melflow {

/// Threads: any. Errors: std::bad_alloc where the ledger of its own is made.
class SinkLedger {
 public:
  /// `run` must be open and outlive this object.
  explicit SinkLedger(const Ledger& run) : run_(run) {}

  /// Records an item that the sink does not get (see NotesLeftOut). May be called from any thread.
  void left_out(std::size_t index, int stage, const ItemError& why) {
    if (of(index) != Outcome::open) return;  // the sink already has it
    own().close(index, why.kind == ItemError::Kind::skipped ? Outcome::skipped : Outcome::failed,
                stage, why.reason);
  }
  /// Records that this sink has the item from an earlier run, with warning `remark`, whatever its
  /// outcome for other sinks.
  void kept(std::size_t index, int stage, const std::string& remark) {
    own().close(index, Outcome::ok, stage, remark);
  }

  [[nodiscard]] Outcome outcome(std::size_t index) const {
    const Outcome own = of(index);
    return own == Outcome::open ? run_.outcome(index) : own;
  }
  [[nodiscard]] Ledger::Entry entry(std::size_t index) const {
    if (of(index) == Outcome::open) return run_.entry(index);
    Ledger::Entry own = own_.load()->entry(index);
    if (own.outcome != Outcome::ok || run_.outcome(index) != Outcome::ok) return own;
    // The run's remark, such as that other sinks lack the item, is part of this sink's, too.
    Ledger::Entry of_run = run_.entry(index);
    if (of_run.reason.find(own.reason) != of_run.reason.npos) return of_run;
    if (of_run.reason.empty()) return own;
    return Ledger::warned(
        {{own.stage, std::move(own.reason)}, {of_run.stage, std::move(of_run.reason)}});
  }
  /// The entry of an item that this sink did not get, or had before the run; else one that is open.
  [[nodiscard]] Ledger::Entry own_entry(std::size_t index) const {
    return of(index) == Outcome::open ? Ledger::Entry{} : own_.load()->entry(index);
  }
  /// The number of items that this sink did not get although others did.
  [[nodiscard]] std::size_t left_out() const {
    const Ledger* own = own_.load(std::memory_order_acquire);
    return own == nullptr ? 0 : own->counts().skipped + own->counts().failed;
  }
  /// Whether an item that is ok may have a warning.
  [[nodiscard]] bool has_remarks() const {
    const Ledger* own = own_.load(std::memory_order_acquire);
    return run_.counts().warned > 0 || (own != nullptr && own->counts().warned > 0);
  }

 private:
  Ledger& own() {
    std::call_once(is_needed_, [this] {
      made_ = std::make_unique<Ledger>();
      made_->open(run_.counts().found, run_.stages());
      own_.store(made_.get(), std::memory_order_release);
    });
    return *made_;
  }
  [[nodiscard]] Outcome of(std::size_t index) const {
    const Ledger* own = own_.load(std::memory_order_acquire);
    return own == nullptr ? Outcome::open : own->outcome(index);
  }

  const Ledger& run_;
  std::once_flag is_needed_;
  std::unique_ptr<Ledger> made_;
  std::atomic<const Ledger*> own_{nullptr};
};

}  // namespace melflow
