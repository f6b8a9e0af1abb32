// Items travel along the edges: small handles to an immutable payload and to its origins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/base/measuring.h"
#include "pipeline/base/result.h"
#include "pipeline/stage/budget.h"
#include "pipeline/stage/ledger.h"

namespace melflow {

class Reach;
class Stage;

/// The base of the state that a stage keeps between blocks of a stream or steps of an item.
class StageState {
 public:
  virtual ~StageState() = default;
};

/// The position of a sub-item in the item it was made from: from `first` to `second` [s].
using Span = std::pair<double, double>;

/// One of several items that a stage makes of one (StageTraits::divides): a variant, a channel, a
/// stretch of a recording. It has no record of its own: the source item is ok only if all of its
/// sub-items are. They pass every order-preserving node one after the other.
struct SubItem {
  std::shared_ptr<const SubItem> of;  ///< the sub-item that it was made from, if any
  const Stage* by = nullptr;          ///< the stage that made it
  std::string_view maker;             ///< the name of that stage's node; owned by the plan
  std::size_t number = 0;             ///< among the sub-items made from the same item, from 0
  std::size_t place = 0;              ///< among all that the node made from the source item, from 0
  /// Set if the stage reports it, and in the last piece: the end may not be known before.
  std::optional<Span> span;
};

/// A source item (a file) on its way through the graph. Everything made from it holds a reference;
/// when the last reference is gone, the item's record in the ledger is closed.
///
/// An item may stand for several records (the utterances of a recording). A stage that cuts makes a
/// stream for each record, called its part. The outcome of a part is independent of the item's once
/// its last piece is emitted; all other records end as the item does. An error after the source
/// costs an item only the blocks that were not yet emitted, so every run completes the same parts.
///
/// The outcome of an item does not depend on which node reports first in time. Each sink goes by
/// the report that comes first in the order of the plan, with sinks after all other nodes. Among
/// reports of one node, or of nodes that all blocks pass one after the other before the graph
/// branches, the earliest block decides. A node has to see everything that precedes a known loss in
/// that order, so only later blocks are dropped.
///
/// Threads: any, except where a function says otherwise.
/// Lifetime: shared by Origins; destroyed by whichever thread gives up the last, which then closes
/// its records and so calls the listeners of the ledger.
/// Locks: its own is held for bookkeeping only; the ledger and sinks are called without it.
class Stream {
 public:
  /// The ledger's records [first, first + count). `is_cut`: a stage makes a part of each, with the
  /// block_cost() `part_cost`.
  struct Records {
    std::size_t first = 0, count = 1;
    bool is_cut = false;
    std::size_t part_cost = 0;
    RunClock::time_point began = {};  ///< when the item was admitted, for its latency
  };
  /// `reach` must outlive the stream. `bounds`: the most bytes that each stage may emit for one
  /// block; empty if that is not known.
  Stream(Ledger& ledger, Records records, std::size_t block_cost, const Reach& reach,
         std::vector<std::size_t> bounds = {})
      : ledger_(ledger),
        records_(records),
        block_cost_(block_cost),
        bounds_(std::move(bounds)),
        reach_(reach) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// The item's position in the source's order, from 0: that of its first record.
  [[nodiscard]] std::size_t index() const { return records_.first; }
  [[nodiscard]] const Records& records() const { return records_; }
  /// The largest number of budget bytes that one block of this stream needs.
  [[nodiscard]] std::size_t block_cost() const { return block_cost_; }
  /// The largest number of bytes that the stage may emit for one block; the greatest number if that
  /// is not known.
  [[nodiscard]] std::size_t bound(int stage) const {
    return bounds_.empty() ? ~std::size_t{0} : bounds_[static_cast<std::size_t>(stage)];
  }

  /// Records a failure: no sink gets the item any more or, with `on_failure: branch`, no sink
  /// downstream of the stage. `block`: the Origin::block concerned.
  void fail(int stage, ItemError error, std::uint64_t block = 0);
  /// Records that the stage routed the item: of its sinks, only those downstream of one of its
  /// outputs `outputs` get it.
  void route(int stage, std::span<const int> outputs, ItemError reason, std::uint64_t block = 0);
  /// Records that the sink `stage` has the item from an earlier run: it gets nothing more of it.
  void keep(int stage);
  /// Whether no sink gets the item.
  [[nodiscard]] bool failed() const { return lost() == kAll; }
  /// Whether nothing that the stage, or one downstream, makes of that block or reports about it
  /// counts any more, so that the block need not be processed.
  [[nodiscard]] bool is_lost_to(int stage, std::uint64_t block) const {
    const std::uint64_t sinks = lost();
    return sinks != 0 && is_behind_losses(sinks, stage, block);
  }
  /// Adds a warning about an item that is ok. All different warnings are reported, in the order of
  /// the plan and, for one node, of the blocks; Ledger::warned() says how many.
  void warn(int stage, std::string text, std::uint64_t block = 0);
  /// Whether an earlier stage failed the item or warned about it, or the run cut the item off.
  [[nodiscard]] bool is_remarked(int stage) const;
  /// Notes that the run stopped before this item was complete, so a piece of it was dropped.
  void cancel();
  /// Notes that the sink `stage` has taken the last piece.
  void sink_done(int stage);

  // ---- For the stage that cuts the stream, in one call at a time

  /// Whether another part follows; skips records that were closed before the run.
  [[nodiscard]] bool has_next_part();
  /// The record of the next part; valid if has_next_part().
  [[nodiscard]] std::size_t next_part() const { return records_.first + begun_; }
  /// Begins the next part, after all pieces of the previous one have been made.
  std::shared_ptr<Stream> begin_part();
  /// For a part: the number of its next piece, as Origin::block.
  [[nodiscard]] std::uint64_t next_piece() const { return next_piece_; }
  void note_piece() { next_piece_ += std::uint64_t{1} << 32; }
  /// Notes that the last piece of the current part has been made.
  void end_part();

  /// The state of stage number `stage` for this stream. Only one worker uses it at a time because a
  /// stage with state sees the blocks of a stream one by one.
  [[nodiscard]] std::unique_ptr<StageState>& state(int stage) { return kept(stage).state; }
  /// Returns the sub-item to which the next piece that stage number `stage` emits belongs: `next`
  /// with its numbers filled in, or the current sub-item if that has not ended. One worker at a
  /// time, as for state().
  std::shared_ptr<const SubItem> next_sub_item(int stage, SubItem next, bool ends);

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  // The position of a loss or a warning: a stage and a block.
  struct Place {
    int stage = 0;
    std::uint64_t block = 0;
  };
  struct Loss {
    std::uint64_t sinks = 0;
    Place at;
    ItemError error;
    bool on_purpose = false;  // by a route or by keep()
    bool is_kept = false;     // the sink has the item from an earlier run
  };
  // Sorted as reported. If a block comes to a node by several inputs, the order in time is left to
  // chance, so the texts decide.
  struct Remark {
    Place at;
    std::string text;
    [[nodiscard]] bool operator<(const Remark& other) const {
      return std::tie(at.stage, at.block, text) <
             std::tie(other.at.stage, other.at.block, other.text);
    }
  };
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_behind_losses(std::uint64_t sinks, int stage, std::uint64_t block) const;
  [[nodiscard]] bool is_before(Place a, Place b) const;
  [[nodiscard]] bool is_over(Place at, bool by_itself) const;
  [[nodiscard]] bool has_lost_all(std::uint64_t sinks) const;
  void lose(Loss loss);
  // Whether its latency is measured: reading the clock twice takes as long as passing three nodes.
  [[nodiscard]] bool is_timed() const {
    return kMeasures && (records_.first < 64 || records_.first % 16 == 0) &&
           records_.began != RunClock::time_point{};
  }
  [[nodiscard]] std::vector<const Loss*> losses_that_count() const;
  [[nodiscard]] static const Loss& main_of(const std::vector<const Loss*>& losses);
  [[nodiscard]] std::vector<Remark> remarks_that_count() const;
  void tell_sinks(std::size_t record, const std::vector<const Loss*>& losses) const;
  void close(std::size_t record);
  void end_last_part();
  // State kept for one stage.
  struct Kept {
    std::unique_ptr<StageState> state;
    std::shared_ptr<const SubItem> at_hand, last;  // current: has not ended yet
  };
  [[nodiscard]] Kept& kept(int stage);

  Ledger& ledger_;
  const Records records_;
  const std::size_t block_cost_;
  const std::vector<std::size_t> bounds_;
  const Reach& reach_;
  std::atomic<std::uint64_t> taken_{0}, lost_{0};  // sets of sinks; kAll: lost by all
  mutable std::mutex mutex_;
  std::vector<Loss> losses_;
  std::set<Remark> remarks_;  // per stage at most one more than are told
  bool cancelled_ = false;
  std::uint64_t next_piece_ = 0;
  std::size_t begun_ = 0;         // number of parts begun
  std::shared_ptr<Stream> part_;  // the current part, or the last one until the item ends
  bool part_is_complete_ = false;
  std::vector<Kept> kept_;
};

/// A piece of a stream inside a payload.
struct Origin {
  // Declared first, so destroyed last: the stream is closed before its memory is returned.
  std::shared_ptr<const Reservation> reservation;
  std::shared_ptr<Stream> stream;
  bool first = true;
  bool last = true;  ///< whether no further piece of this stream follows on this edge
  /// Its number in the stream; greater than the number of any earlier piece.
  std::uint64_t block = 0;
  std::shared_ptr<const SubItem> sub_item = nullptr;  ///< the sub-item it is a piece of, or null
  bool is_last_of_sub_item = true;                    ///< on this edge

  /// Whether the piece is its whole stream.
  [[nodiscard]] bool whole() const { return first && last; }
  /// Whether this is the last piece on this edge of its sub-item, or else of its stream.
  [[nodiscard]] bool ends() const { return sub_item ? is_last_of_sub_item : last; }
};
using Origins = std::vector<Origin>;

struct Item {
  // Declared before the payload, so destroyed after it: the memory is freed before its reservation
  // is returned.
  std::shared_ptr<const Origins> origins;  ///< null once it is done, and until it is admitted
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;  ///< of the payload, or on disk; not what is reserved; kept once done
  std::size_t rows = 0;   ///< of the payload
  int output = -1;        ///< the named output by which it left its stage; -1: by all outputs
};

}  // namespace melflow
