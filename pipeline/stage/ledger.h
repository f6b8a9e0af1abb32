// Records the outcome of every source item: ok + skipped + failed (+ not run, when a run was
// stopped) = found, always. A record takes eight bytes, so that a million files fit beside the
// work. An item that is ok without a warning is closed without a lock, since every worker closes
// files here.
#pragma once

#include <tbb/spin_mutex.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/duration_histogram.h"
#include "pipeline/base/result.h"

namespace melflow {

enum class Outcome : std::uint8_t { open, ok, skipped, failed, not_run };
const char* to_text(Outcome outcome);

/// Threads: open() and subscribe() before the run; everything else from any thread.
/// Locks: its own is a leaf; listeners are called without it.
/// Errors: close() throws nothing and keeps a wrong call for closed_wrongly(); for lack of memory
/// it closes the record without its reason.
class Ledger {
 public:
  struct Counts {
    std::size_t found = 0, ok = 0, skipped = 0, failed = 0, not_run = 0, warned = 0;
    [[nodiscard]] std::size_t closed() const { return ok + skipped + failed + not_run; }
  };
  /// The record of an item. `stage`: the node's name, "" for ok without a warning; `reason`: the
  /// reason or, for an ok item, the warnings.
  struct Entry {
    Outcome outcome = Outcome::open;
    std::string stage;
    std::string reason;
  };
  /// The record of an item that is ok, with warnings, {node, text} each, in their order: the node
  /// of the first, and the first kMostWarnings joined by "; ", with the node's name before one of
  /// another node.
  using Warnings = std::vector<std::pair<std::string, std::string>>;
  static constexpr std::size_t kMostWarnings = 4;
  [[nodiscard]] static Entry warned(const Warnings& warnings);
  using Listener = std::function<void(std::size_t index, Outcome outcome)>;

  /// Sets the number of items and the node names that `stage` numbers refer to. Called before the
  /// run.
  void open(std::size_t found, std::vector<std::string> stages);
  /// Adds a listener that is called for every close, in any order, from any worker, without a lock
  /// held. It may close further items. It must not throw, since destructors close records.
  void subscribe(Listener listener) { listeners_.push_back(std::move(listener)); }

  /// Closes an item; only the first call counts. `stage`: index of a name given to open(), or -1
  /// for none. Does not throw, since destructors close items.
  void close(std::size_t index, Outcome outcome, int stage, const std::string& reason) noexcept;
  /// The first item that was closed a second time or never opened: a bug of the caller, which fails
  /// the run.
  [[nodiscard]] std::optional<std::size_t> closed_wrongly() const {
    const std::size_t index = wrong_;
    return index == kNone ? std::nullopt : std::optional(index);
  }

  /// The number of the stage with that name, for close(); -1 if there is none.
  [[nodiscard]] int stage_number(const std::string& name) const;
  /// The names given to open().
  [[nodiscard]] const std::vector<std::string>& stages() const { return stages_; }

  [[nodiscard]] Counts counts() const;
  /// The first item that is not closed yet; the number of items if all are closed.
  [[nodiscard]] std::size_t oldest_open() const;
  [[nodiscard]] Entry entry(std::size_t index) const;
  [[nodiscard]] Outcome outcome(std::size_t index) const;

  /// Starts to note the times of the last kNoted closings; called when few items are left.
  void note_closings() { notes_closings_.store(true, std::memory_order_relaxed); }
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] std::vector<Time> closings() const;

  /// Notes how long an item was in the graph, from its admission until its last sink had it; of
  /// the first 64 items, and of one in 16 of the others.
  void note_latency(std::chrono::nanoseconds latency);
  [[nodiscard]] DurationHistogram latencies() const;
  static constexpr std::size_t kNoted = 256;

 private:
  // `stage` and `reason` are written before `outcome`.
  struct Record {
    std::atomic<Outcome> outcome{Outcome::open};
    std::int16_t stage = -1;
    std::uint32_t reason = 0;
  };
  [[nodiscard]] std::uint32_t reason_number(const std::string& reason);
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  void note_wrong(std::size_t index) noexcept {
    std::size_t none = kNone;
    wrong_.compare_exchange_strong(none, index);
  }

  std::vector<Record> records_;
  // Counts of items that are ok without a warning, spread over several cache lines so that threads
  // do not contend for one.
  struct alignas(64) Tally {
    std::atomic<std::size_t> ok{0};
    mutable tbb::spin_mutex mutex;  // of latencies
    DurationHistogram latencies;
  };
  std::array<Tally, 16> plain_;
  mutable std::atomic<std::size_t> oldest_{0};
  std::atomic<std::size_t> wrong_{kNone};  // the first, kNone for none

  std::vector<Listener> listeners_;  // all of them before the run

  mutable std::mutex mutex_;  // protects all members below
  std::vector<std::string> stages_;
  std::vector<const std::string*> reasons_;          // by number; 0 is ""
  std::map<std::string, std::uint32_t> reason_ids_;  // equal reasons are kept once
  Counts counts_;                                    // without the counts in plain_
  std::deque<Time> closings_;
  std::atomic<bool> notes_closings_{false};  // not protected by the mutex
};

}  // namespace melflow
