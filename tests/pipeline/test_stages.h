// Small stages over numbers. A World contains everything that a stage measures from inside, and
// every hook that a test attaches to it.
//
//   numbers -> Number      step, expand, running, parts: Number -> Number
//   gather: Number -> Batch      batch_step: Batch -> Batch      to_word: Number -> Word
//   beside: Numbers -> Batch      batch_beside: Batches -> Batch
//   keep: Number sink      batch_keep: Batch sink
//
// The result of a sink is a list of rows (item, block, value) in the order of writing. With
// `ordered` the sink writes in the source's order and parks early items, as a writer of one file
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/registry.h"
#include "tests/support/concurrency_probe.h"

namespace melflow::test {

std::uint64_t mix(std::uint64_t a, std::uint64_t b);

/// Counts the bytes of all live payloads.
class LiveBytes {
 public:
  void add(std::size_t bytes);
  void remove(std::size_t bytes) { now_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t now() const { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> now_{0}, peak_{0};
};

struct Number {
  static constexpr const char* kName = "number";
  /// `row_`: its number among the blocks of its sub-item; -1: equal to `block_`.
  Number(LiveBytes& live, std::size_t item_, int block_, std::uint64_t value_, std::size_t size_,
         int row_ = -1)
      : item(item_),
        block(block_),
        row(row_ < 0 ? block_ : row_),
        value(value_),
        size(size_),
        live_(live) {
    live_.add(size);
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  ~Number() { live_.remove(size); }
  [[nodiscard]] std::size_t bytes() const { return size; }
  [[nodiscard]] std::size_t rows() const { return 1; }

  const std::size_t item;
  const int block, row;
  const std::uint64_t value;
  const std::size_t size;

 private:
  LiveBytes& live_;
};

struct Batch {
  static constexpr const char* kName = "batch";
  std::vector<std::shared_ptr<const Number>> parts;
  [[nodiscard]] std::size_t bytes() const { return 0; }
  [[nodiscard]] std::size_t rows() const { return parts.size(); }
};

struct Word {
  static constexpr const char* kName = "word";
  [[nodiscard]] std::size_t bytes() const { return 1; }
  [[nodiscard]] std::size_t rows() const { return 1; }
};

/// What one node measured of itself.
struct NodeLog {
  int concurrency = 1, queue = 1;
  NodeLog* up = nullptr;
  bool is_source = false;
  int items_per_task = 1;    ///< most items of a task that it emits
  bool comes_again = false;  ///< the rest of a task may wait here outside of both bounds
  ConcurrencyProbe probe;
  std::atomic<long> started{0};   ///< process() calls begun
  std::atomic<long> finished{0};  ///< process() calls ended
  std::atomic<long> given{0};     ///< payloads begun for later stages
  std::atomic<long> lost{0};      ///< those of them that were never emitted
};

struct Row {
  std::size_t item = 0;
  int block = 0;
  std::uint64_t value = 0;
  std::size_t sub_item = 0;  ///< SubItem::place of its sub-item
  friend bool operator==(const Row&, const Row&) = default;
};

class Collector;

class World {
 public:
  World();
  ~World();

  /// Called inside process() of the node with this name; may throw, wait, or return an error.
  using Hook = std::function<std::optional<ItemError>(const Number&, ItemContext*)>;
  std::map<std::string, Hook> hooks;
  /// Called inside pull() of a `gather` node.
  using Pull = std::function<std::optional<ItemError>(const Batch&, ItemContext&)>;
  std::map<std::string, Pull> on_pull;
  /// Called in start(), drop_waiting(), drop_lost() and finish() of that node.
  std::map<std::string, std::function<void(RunContext&)>> on_start;
  std::map<std::string, std::function<void()>> on_drop_waiting, on_drop_lost;
  std::map<std::string, std::function<void(RunContext&, Ending)>> on_finish;
  /// The size of the item with this index in a `numbers` node [bytes].
  std::function<std::size_t(std::size_t)> file_bytes = [](std::size_t) { return 1000; };

  NodeLog& log(const std::string& node);
  Collector& collector(const std::string& node);
  std::vector<Row>& rows(const std::string& node);
  /// Reports something that a stage saw and that must never happen.
  void complain(const std::string& text);
  std::vector<std::string> complaints() const;
  std::string state() const;

  Registry registry;
  LiveBytes live;
  /// Off where items are dropped from queues, which no stage can see.
  std::atomic<bool> check_edges{true};

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<NodeLog>> logs_;
  std::map<std::string, std::unique_ptr<Collector>> collectors_;
  std::vector<std::string> complaints_;
};

/// A hook that calls `look`, of a number or a number and its context, and lets the item go on.
template <class F>
World::Hook on_item(F look) {
  return [look = std::move(look)](const Number& n, ItemContext* context) mutable {
    if constexpr (std::is_invocable_v<F&, const Number&>)
      look(n);
    else
      look(n, context);
    return std::optional<ItemError>();
  };
}
/// A hook that ends items like this where `is_so`.
template <class F>
World::Hook fail_if(F is_so, ItemError error) {
  return [is_so = std::move(is_so), error = std::move(error)](const Number& n, ItemContext*) {
    return is_so(n) ? std::optional(error) : std::nullopt;
  };
}

/// The value of an item after the nodes of a chain of plain steps.
std::uint64_t first_value(std::size_t item);
std::uint64_t stepped(std::uint64_t value, const std::string& node);
/// The value of a row of a `beside` node, from `left`, the value so far (0 for none), and the next
/// input's block.
std::uint64_t beside(std::uint64_t left, std::uint64_t value, std::int64_t row);
/// The number of the output by which an item leaves a `fork` node; -1 if the node drops the item.
int way_of(std::size_t item, const std::string& node, int outputs, bool drops);
/// Whether an item of a `numbers` node with `group` begins here: it represents the numbers up to
/// the next one.
bool begins_group(std::size_t number, int group);
/// Assigns numbers to several `numbers` nodes with these counts: one node after the other or, if
/// `mixed`, in any order; all numbers of an item with `group` have the same node.
std::vector<std::size_t> owners_of(const std::vector<int>& counts, int group, bool mixed);
/// The blocks that make up part number `k` of an item with `blocks` blocks in a `parts` node.
std::vector<std::size_t> blocks_of_part(std::size_t k, std::size_t blocks);
/// The number of blocks that an `expand` or `divide` node with `blocks` emits for this block of an
/// item: 1 to `blocks`.
int block_count(std::size_t item, int blocks, int block = 0);
/// Whether a sub-item of a `divide` node ends with the piece that has this value.
bool ends_sub_item(std::uint64_t value);

}  // namespace melflow::test
