// Items, which cross the edges: a small handle to an immutable payload, and the payload's origins.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/budget.h"
#include "pipeline/ledger.h"
#include "pipeline/result.h"

namespace melflow {

/// The base of the state that a stage keeps between the blocks of a stream, or the steps of an
/// item.
class StageState {
 public:
  virtual ~StageState() = default;
};

/// A source item (a file) on its way through the graph. Everything made from it holds a reference;
/// when the last reference is gone, the item's record in the ledger is closed.
class Stream {
 public:
  Stream(Ledger& ledger, std::size_t index, std::size_t block_cost, int sinks, std::size_t stages)
      : ledger_(ledger), index_(index), block_cost_(block_cost), sinks_(sinks), stages_(stages) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// The item's place in the source's order, from 0.
  [[nodiscard]] std::size_t index() const { return index_; }
  /// The most bytes of the budget that one block of this stream needs.
  [[nodiscard]] std::size_t block_cost() const { return block_cost_; }

  /// Fails the stream; only the first call counts. Nothing of a failed stream is processed any
  /// more.
  void fail(int stage, ItemError error);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Adds a remark on an item that is ok nevertheless; the first one is kept.
  void warn(int stage, std::string text);
  /// Whether it failed, was cut off, or has a remark.
  [[nodiscard]] bool is_remarked() const;
  /// Notes that the run stopped before this item was complete: a piece of it was dropped.
  void cancel();
  /// Notes that one sink has taken the last piece.
  void sink_done() { sinks_done_.fetch_add(1, std::memory_order_acq_rel); }

  /// The state of stage number `stage` for this stream; used by one worker at a time because a
  /// stage with state sees the blocks of a stream one by one.
  [[nodiscard]] std::unique_ptr<StageState>& state(int stage);

 private:
  Ledger& ledger_;
  const std::size_t index_;
  const std::size_t block_cost_;
  const int sinks_;
  std::atomic<int> sinks_done_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::optional<ItemError> error_;
  std::string warning_;
  int stage_ = -1;
  bool cancelled_ = false;
  const std::size_t stages_;
  std::once_flag has_states_;
  std::vector<std::unique_ptr<StageState>> states_;
};

/// A piece of a stream inside a payload.
struct Origin {
  // Declared first, so destroyed last: when the memory is given back the stream is closed already.
  std::shared_ptr<const Reservation> reservation;
  std::shared_ptr<Stream> stream;
  bool first = true;
  bool last = true;  ///< whether no further piece of this stream follows on this edge

  /// Whether the piece is its whole stream.
  [[nodiscard]] bool whole() const { return first && last; }
};
using Origins = std::vector<Origin>;

struct Item {
  // Declared before the payload, so destroyed after it: memory goes back before its reservation does.
  std::shared_ptr<const Origins> origins;
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;
  std::size_t rows = 0;
};

}  // namespace melflow
