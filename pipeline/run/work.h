// Work travels from node to node: one item or several small ones, with the state of the stage that
// has them. oneTBB's nodes pass a plain pointer, since they copy their messages and keep the copies
// longer than memory may be held; the node to which Work was sent owns it. Private to the graph's
// own files.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/stage/budget.h"
#include "pipeline/stage/stage.h"

namespace melflow {

class GraphNode;

/// How work came into a node.
enum class Entry {
  queued,  ///< through the queue, in which it has a token until it begins
  direct,  ///< it began as it was sent
  resumed  ///< it was in the node before and has more to give, or is a flush: it has no token
};

/// Counts what passed a node on one side.
struct Passed {
  std::size_t items = 0, bytes = 0, rows = 0;
  std::size_t files = 0;  ///< source items whose first block is one of these
  [[gnu::always_inline]] void add(const Item& item) {
    ++items;
    if (item.origins)
      for (const Origin& o : *item.origins) files += o.first ? 1 : 0;
    bytes += item.bytes;
    rows += item.rows;
  }
  Passed& operator+=(const Passed& more) {
    items += more.items;
    bytes += more.bytes;
    rows += more.rows;
    files += more.files;
    return *this;
  }
};

struct Work {
  std::vector<Item> items;  ///< the input of the stage
  std::size_t index = 0;    ///< of the oldest source item; the lowest goes first
  std::uint64_t count = 0;  ///< among the blocks of one source item; the lowest goes first

  /// Where it came from; `sender` gets the token of a queued one back when it begins.
  struct Sent {
    int node = -1;
    GraphNode* sender = nullptr;
    std::size_t branch = 0;  ///< of the sender
  } sent;

  /// Its state in NodeQueue, under the node's lock.
  struct Queued {
    Entry entry = Entry::queued;
    std::vector<const Stream*> streams;  ///< of which it is a block that has to come in order
    std::size_t behind = 0;              ///< streams of which an earlier block has not left
    Work* next = nullptr;                ///< in a StartList
  } queued;

  /// How far the stage is with the items; begins anew in every node.
  struct Progress {
    bool is_flush = false;
    std::size_t at = 0;                  ///< the present item; those before it are done
    std::vector<Item> out;               ///< the output of the stage
    std::unique_ptr<StageState> cursor;  ///< of the present item, if it gives several blocks
    std::shared_ptr<const Reservation> reservation;  ///< for the next of these blocks
    std::uint64_t given = 0;  ///< number of such blocks so far, as Origin::block counts them
  } progress;

  /// The present visit of a stage.
  struct Timing {
    std::chrono::steady_clock::time_point began;
    std::size_t began_at = 0;  ///< Progress::at then
    std::size_t files = 1;     ///< source items in it
    std::int64_t cpu = -1;     ///< [ns]; -1: not measured
  } timing;

  /// All of its items are in an engine at once.
  struct InEngine {
    struct Tag {
      Work* work = nullptr;
      std::size_t item = 0;
      std::uint64_t observed = 0;  ///< its number for the observer
    };
    std::vector<Tag> tags;
    std::size_t in_flight = 0;
    Passed passed;
  };
  std::unique_ptr<InEngine> in_engine;

  /// Made by the source, until there is memory for it.
  struct Made {
    struct One {
      std::size_t cost = 0;     ///< [bytes]
      std::size_t records = 1;  ///< in the ledger
      std::vector<std::size_t> bounds;
    };
    std::vector<One> each;  ///< for each item of Progress::out
    std::size_t cost = 0;   ///< of all [bytes]
  };
  std::unique_ptr<Made> made;

  /// What asks for memory: an item with these records, or the part of an item with the record
  /// `record`.
  struct Request {
    std::size_t record = 0, records = 1;
    bool is_part = false;
    std::size_t part_cost = 0;  ///< of the next payload of a stage that cuts [bytes]
    [[nodiscard]] Claim claim(std::size_t oldest_open) const {
      if (oldest_open < record || oldest_open - record >= records) return Claim::later;
      return is_part ? Claim::oldest_part : Claim::oldest_item;
    }
  } request;

  /// Makes it as new, to carry the output of the stage.
  void renew() {
    progress.out.clear();  // keeps its memory
    progress.at = 0;
    progress.is_flush = false;
    progress.given = 0;
    progress.cursor.reset();
    progress.reservation.reset();
    in_engine.reset();
    made.reset();
    request.is_part = false;
  }
  /// Whether no output that node number `node` could make of item number `i` counts any more.
  [[nodiscard]] bool is_lost_to(int node, std::size_t i) const {
    const std::uint64_t given = i == progress.at ? progress.given : 0;
    return std::all_of(items[i].origins->begin(), items[i].origins->end(), [&](const Origin& o) {
      return o.stream->is_lost_to(node, o.block + given);
    });
  }
};

/// Orders heaps of work: the oldest source item comes out first, of one the lowest count.
/// Blocks that come by several inputs may be equal, and those of a stage that makes several of one;
/// these come in any order.
struct IsYounger {
  bool operator()(const Work* a, const Work* b) const {
    return a->index != b->index ? a->index > b->index : a->count > b->count;
  }
};

/// Work that may begin now, in the order in which it should.
class StartList {
 public:
  void add(Work* work) {
    work->queued.next = nullptr;
    *end_ = work;
    end_ = &work->queued.next;
  }
  /// The first one, which leaves the list; null when it is empty.
  Work* take() {
    Work* work = first_;
    if (work != nullptr) {
      first_ = work->queued.next;
      if (first_ == nullptr) end_ = &first_;
    }
    return work;
  }

  StartList() = default;
  StartList(const StartList&) = delete;
  StartList& operator=(const StartList&) = delete;

 private:
  Work* first_ = nullptr;
  Work** end_ = &first_;
};

/// Number of an output among those of all nodes, for Item::output.
inline int output_number(int node, int output) { return node * 1024 + output; }

inline std::shared_ptr<const Origins> one_origin(Origin origin) {
  auto out = std::make_shared<Origins>();
  out->push_back(std::move(origin));
  return out;
}

/// Marks the streams as cut off: the run stops before node number `node` is done with these pieces,
/// for which it has given `given` blocks, as Origin::block counts.
inline void cancel(const Origins& origins, int node, std::uint64_t given = 0) {
  for (const Origin& o : origins)
    if (!o.stream->is_lost_to(node, o.block + given)) o.stream->cancel();
}

}  // namespace melflow
