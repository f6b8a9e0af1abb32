// Items, which cross the edges: a small handle to an immutable payload, and the payload's origins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/base/result.h"
#include "pipeline/stage/budget.h"
#include "pipeline/stage/ledger.h"

namespace melflow {

class Reach;
class Stage;

/// The base of the state that a stage keeps between the blocks of a stream, or the steps of an
/// item.
class StageState {
 public:
  virtual ~StageState() = default;
};

/// Where a sub-item lies in what it was made of: from `first` to `second` [s].
using Span = std::pair<double, double>;

/// One of several items that a stage makes of one (StageTraits::divides): a variant, a channel, a
/// stretch of a recording. It has no record of its own: the source item is ok only if all of its
/// sub-items are. They pass every node that keeps the order one after the other.
struct SubItem {
  std::shared_ptr<const SubItem> of;  ///< what it was made of, where that is one itself
  const Stage* by = nullptr;          ///< that made it
  std::string_view maker;             ///< its node; of the plan's
  std::size_t number = 0;             ///< among those that were made of the same one, from 0
  std::size_t place = 0;              ///< among all that the node made of the source item, from 0
  /// Where the stage says so; of its last piece, since before that the end may not be known.
  std::optional<Span> span;
};

/// A source item (a file) on its way through the graph. Everything made from it holds a reference;
/// when the last reference is gone, the item's record in the ledger is closed.
///
/// An item may stand for several records (the utterances of a recording). A stage that cuts makes a
/// stream of each, its part. What became of a part is its own matter once its last piece is given;
/// all other records end as the item does. An error behind the source costs an item only the
/// blocks that were not given before, so that the same parts come out whole in every run.
///
/// What becomes of an item does not depend on which node is the first in time to say something of
/// it. Of what nodes say, each sink goes by what comes first in the order of the plan, sinks after
/// all other nodes; in one node and in those that every block passes one after the other, before
/// the graph branches, by the earliest block. A node has to see what comes before a loss that is
/// known already, so only what comes behind it is dropped.
class Stream {
 public:
  /// The records [first, first + count) of the ledger. `is_cut`: a stage makes parts of them, whose
  /// block_cost() is `part_cost`.
  struct Records {
    std::size_t first = 0, count = 1;
    bool is_cut = false;
    std::size_t part_cost = 0;
  };
  /// `reach` outlives it. `bounds`: the most bytes that each stage may give of one of its blocks;
  /// none where that is not known.
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

  /// The item's place in the source's order, from 0: that of its first record.
  [[nodiscard]] std::size_t index() const { return records_.first; }
  [[nodiscard]] const Records& records() const { return records_; }
  /// The most bytes of the budget that one block of this stream needs.
  [[nodiscard]] std::size_t block_cost() const { return block_cost_; }
  /// The most bytes that the stage may give of one block; the greatest number where that is not
  /// known.
  [[nodiscard]] std::size_t bound(int stage) const {
    return bounds_.empty() ? ~std::size_t{0} : bounds_[static_cast<std::size_t>(stage)];
  }

  /// No sink gets it any more, or with `on_failure: branch` none behind the stage. `block`: that it
  /// is said of, Origin::block.
  void fail(int stage, ItemError error, std::uint64_t block = 0);
  /// The same on purpose: of the stage's sinks, only those to which one of its outputs `outputs`
  /// leads get it.
  void route(int stage, std::span<const int> outputs, ItemError reason, std::uint64_t block = 0);
  /// That stage, a sink, has its record from an earlier run: it gets nothing, and misses nothing.
  void keep(int stage);
  /// No sink gets it.
  [[nodiscard]] bool failed() const { return lost() == kAll; }
  /// Nothing that the stage, or one behind it, can make or say of that block counts any more: it
  /// need not be processed.
  [[nodiscard]] bool is_lost_to(int stage, std::uint64_t block) const {
    const std::uint64_t sinks = lost();
    return sinks != 0 && is_behind_losses(sinks, stage, block);
  }
  /// Adds a warning about an item that is ok nevertheless; that of the first node of the plan is
  /// kept.
  void warn(int stage, std::string text, std::uint64_t block = 0);
  /// Whether a stage before that one failed it or has a warning about it, or it was cut off.
  [[nodiscard]] bool is_remarked(int stage) const;
  /// Notes that the run stopped before this item was complete: a piece of it was dropped.
  void cancel();
  /// That stage, a sink, has taken the last piece.
  void sink_done(int stage);

  // ---- by the stage that cuts it, in one call at a time

  /// Whether there is a further part; records that were closed before the run are passed over.
  [[nodiscard]] bool has_next_part();
  /// Its record, where there is one.
  [[nodiscard]] std::size_t next_part() const { return records_.first + begun_; }
  /// Begins it, when all pieces of the one before have been made.
  std::shared_ptr<Stream> begin_part();
  /// Of a part: the number of its next piece, as Origin::block.
  [[nodiscard]] std::uint64_t next_piece() const { return next_piece_; }
  void note_piece() { next_piece_ += std::uint64_t{1} << 32; }
  /// Notes that the last piece of the part begun last has been made.
  void end_part();

  /// The state of stage number `stage` for this stream; used by one worker at a time because a
  /// stage with state sees the blocks of a stream one by one.
  [[nodiscard]] std::unique_ptr<StageState>& state(int stage) { return kept(stage).state; }
  /// The sub-item that the next piece of this stream is of which stage number `stage` gives: a new
  /// one, `next` without its numbers, unless the one before has not ended. To be called as state()
  /// is.
  std::shared_ptr<const SubItem> next_sub_item(int stage, SubItem next, bool ends);

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  // Where something is said.
  struct Place {
    int stage = 0;
    std::uint64_t block = 0;
  };
  struct Loss {
    std::uint64_t sinks = 0;
    Place at;
    ItemError error;
    bool on_purpose = false;  // by a route, or:
    bool is_kept = false;     // the sink has it from an earlier run
  };
  struct Remark {
    Place at;
    std::string text;
  };
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_behind_losses(std::uint64_t sinks, int stage, std::uint64_t block) const;
  [[nodiscard]] bool is_before(Place a, Place b) const;
  [[nodiscard]] bool is_over(Place at, bool by_itself) const;
  [[nodiscard]] bool has_lost_all(std::uint64_t sinks) const;
  void lose(Loss loss);
  [[nodiscard]] std::vector<const Loss*> losses_that_count() const;
  [[nodiscard]] static const Loss& main_of(const std::vector<const Loss*>& losses);
  [[nodiscard]] const Remark* remark() const;
  void tell_sinks(std::size_t record, const std::vector<const Loss*>& losses) const;
  void close(std::size_t record);
  void end_last_part();
  // What is kept for a stage.
  struct Kept {
    std::unique_ptr<StageState> state;
    std::shared_ptr<const SubItem> at_hand, last;  // at_hand: it has not ended
  };
  [[nodiscard]] Kept& kept(int stage);

  Ledger& ledger_;
  const Records records_;
  const std::size_t block_cost_;
  const std::vector<std::size_t> bounds_;
  const Reach& reach_;
  std::atomic<std::uint64_t> taken_{0}, lost_{0};  // sets of sinks; kAll: by all
  mutable std::mutex mutex_;
  std::vector<Loss> losses_;
  std::vector<Remark> remarks_;  // at most one of each stage
  bool cancelled_ = false;
  std::uint64_t next_piece_ = 0;
  std::size_t begun_ = 0;         // parts
  std::shared_ptr<Stream> part_;  // that is not complete; or the last one, until the item ends
  bool part_is_complete_ = false;
  std::once_flag has_kept_;
  std::vector<Kept> kept_;
};

/// A piece of a stream inside a payload.
struct Origin {
  // Declared first, so destroyed last: when the memory is given back the stream is closed already.
  std::shared_ptr<const Reservation> reservation;
  std::shared_ptr<Stream> stream;
  bool first = true;
  bool last = true;  ///< whether no further piece of this stream follows on this edge
  /// Its place among the pieces of its stream: greater than those of the pieces before.
  std::uint64_t block = 0;
  std::shared_ptr<const SubItem> sub_item = nullptr;  ///< that it is a piece of; or none
  bool is_last_of_sub_item = true;                    ///< on this edge

  /// Whether the piece is its whole stream.
  [[nodiscard]] bool whole() const { return first && last; }
  /// Whether no further piece of its sub-item, or without one of its stream, follows on this edge.
  [[nodiscard]] bool ends() const { return sub_item ? is_last_of_sub_item : last; }
};
using Origins = std::vector<Origin>;

struct Item {
  // Declared before the payload, so destroyed after it: memory goes back before its reservation
  // does.
  std::shared_ptr<const Origins> origins;
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;
  std::size_t rows = 0;
  int output = -1;  ///< the named output that it left its stage by; -1: by all there are
};

}  // namespace melflow
