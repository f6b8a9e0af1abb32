// Work travels from node to node: one item or several small ones, with the place that they hold in
// a queue and the state of the stage that has them. oneTBB's nodes pass a plain pointer, since they
// copy their messages and keep the copies longer than a place or memory may be held; the node to
// which Work was sent owns it. Private to the graph's own files.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/stage/budget.h"
#include "pipeline/stage/stage.h"

namespace melflow {

class GraphNode;

/// The number of an item among its stream's blocks, for a stage that takes them in order.
struct Turn {
  const Stream* stream = nullptr;
  std::uint32_t number = 0;
  std::uint32_t branch = 0;  // of the fan-out before the stage
};

/// The way in which work comes to a node.
enum class Came {
  by_queue,
  past_queue,  // it began as it was sent: it never had a place in the queue
  again        // it was there before and has more to give, or is a flush
};

/// Counts what passed a node on one side.
struct Passed {
  std::size_t items = 0, bytes = 0, rows = 0;
  std::size_t files = 0;  // that began with one of these items
  void add(const Item& item) {
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
  std::vector<Item> items;  // what the stage is given
  std::size_t index = 0;    // of the oldest source item; lower goes first
  std::uint64_t count = 0;  // among the blocks of one source item; lower goes first
  Came came = Came::by_queue;

  int from = -1;  // the number of the node that made it
  // The node that made it, and gets the place in the queue back when it has begun.
  GraphNode* maker = nullptr;
  // Branches that have not yet taken their copy of a message sent to several; else 0.
  std::atomic<int> copies{0};
  std::vector<Turn> turns;

  // In a stage.
  bool is_flush = false;
  std::size_t at = 0;                  // the item at hand; those before it are done
  std::vector<Item> out;               // what the stage gave
  std::unique_ptr<StageState> cursor;  // of the item at hand, when it gives several blocks
  std::shared_ptr<const Reservation> reservation;  // for the next of them
  std::uint64_t given = 0;                         // of such blocks, what Origin::block counts
  // Of the present visit.
  std::chrono::steady_clock::time_point began;
  std::size_t began_at = 0;  // `at` then
  std::size_t files = 1;     // source items in it
  std::int64_t cpu = -1;     // [ns]; -1: not measured

  // With an engine, which has all items at once.
  struct Begun {
    Work* work = nullptr;
    std::size_t item = 0;
    std::uint64_t observed = 0;  // what the observer calls it
  };
  std::vector<Begun> begun;
  std::size_t under_way = 0;
  Passed passed;

  // Of the source: what it made, until there is memory for it.
  struct Made {
    std::size_t cost = 0;     // [bytes]
    std::size_t records = 1;  // of the ledger
    std::vector<std::size_t> bounds;
  };
  std::vector<Made> made;  // each item
  std::size_t cost = 0;    // of all

  // What waits for memory: an item with these records, or a part of one with this record.
  std::size_t record = 0, records = 1;
  bool is_part = false;
  std::size_t part_cost = 0;  // of the next payload of a stage that cuts [bytes]; 0: a whole block

  [[nodiscard]] Claim claim(std::size_t oldest_open) const {
    if (oldest_open < record || oldest_open - record >= records) return Claim::later;
    return is_part ? Claim::oldest_part : Claim::oldest_item;
  }

  /// Makes it as new, to carry the output of the stage.
  void renew() {
    out.clear();
    at = 0;
    is_flush = false;
    is_part = false;
    given = 0;
    cursor.reset();
    reservation.reset();
  }
  /// Whether nothing of item number `i` counts that node number `node` would make of it.
  [[nodiscard]] bool is_lost_to(int node, std::size_t i) const {
    return std::all_of(items[i].origins->begin(), items[i].origins->end(), [&](const Origin& o) {
      return o.stream->is_lost_to(node, o.block + (i == at ? given : 0));
    });
  }
};

/// The message that oneTBB's nodes pass. It includes the keys of its order, because a queue
/// compares messages even after it has passed them on.
struct Message {
  Work* work = nullptr;
  std::size_t index = 0;
  std::uint64_t count = 0;

  Message() = default;
  explicit Message(Work* w) : work(w), index(w->index), count(w->count) {}
};

/// Orders the oldest source item first; as queues require it, the first is the greatest.
struct IsYounger {
  bool operator()(const Message& a, const Message& b) const {
    return a.index != b.index ? a.index > b.index : a.count > b.count;
  }
  bool operator()(Work* a, Work* b) const { return (*this)(Message(a), Message(b)); }
};

/// Number of an output among those of all nodes, for Item::output.
inline int output_number(int node, int output) { return node * 1024 + output; }

inline std::shared_ptr<const Origins> one_origin(Origin origin) {
  auto out = std::make_shared<Origins>();
  out->push_back(std::move(origin));
  return out;
}

/// The run stops, and these are not processed by node number `node`, which has given of them what
/// Origin::block counts as `given`.
inline void cancel(const Origins& origins, int node, std::uint64_t given = 0) {
  for (const Origin& o : origins)
    if (!o.stream->is_lost_to(node, o.block + given)) o.stream->cancel();
}

}  // namespace melflow
