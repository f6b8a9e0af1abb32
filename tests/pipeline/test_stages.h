// Small stages over numbers. Everything that a stage measures from inside, and every hook a test
// hangs into it, is in a World.
//
//   numbers -> Number      step, expand, running, parts: Number -> Number
//   gather: Number -> Batch      batch_step: Batch -> Batch      to_word: Number -> Word
//   beside: Numbers -> Batch      batch_beside: Batches -> Batch
//   keep: Number sink      batch_keep: Batch sink
//
// What leaves a sink is a list of rows (item, block, value), in the order it was written; with
// `ordered` the sink writes in the source's order and parks what comes too early, as a writer of
// one file does.
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

/// Bytes of all payloads that are alive.
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
  /// `row_`: its number among the blocks of its sub-item; -1: as `block_`.
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

/// What one node saw of itself.
struct NodeLog {
  int concurrency = 1, queue = 1;
  NodeLog* up = nullptr;
  bool is_source = false;
  int items_per_task = 1;    ///< of what it gives, at most
  bool comes_again = false;  ///< what is left of a task may wait here outside of both bounds
  ConcurrencyProbe probe;
  std::atomic<long> started{0};   ///< process() calls begun
  std::atomic<long> finished{0};  ///< and ended
  std::atomic<long> given{0};     ///< payloads begun for the next stages
  std::atomic<long> lost{0};      ///< of them, those that came to nothing
};

struct Row {
  std::size_t item = 0;
  int block = 0;
  std::uint64_t value = 0;
  std::size_t sub_item = 0;  ///< SubItem::place of what it is a piece of
  friend bool operator==(const Row&, const Row&) = default;
};

class Collector;

class World {
 public:
  World();
  ~World();

  /// Called inside process() of the node with this name; may throw, wait, or give an error.
  using Hook = std::function<std::optional<ItemError>(const Number&, ItemContext*)>;
  std::map<std::string, Hook> hooks;
  /// Called inside pull() of a `gather` node.
  using Pull = std::function<std::optional<ItemError>(const Batch&, ItemContext&)>;
  std::map<std::string, Pull> on_pull;
  /// Called at start(), drop_waiting() and finish() of that node.
  std::map<std::string, std::function<void(RunContext&)>> on_start;
  std::map<std::string, std::function<void()>> on_drop_waiting;
  std::map<std::string, std::function<void(RunContext&, Ending)>> on_finish;
  /// The size that a `numbers` node gives an item of this index [bytes].
  std::function<std::size_t(std::size_t)> file_bytes = [](std::size_t) { return 1000; };

  NodeLog& log(const std::string& node);
  Collector& collector(const std::string& node);
  std::vector<Row>& rows(const std::string& node);
  /// Something a stage saw that must never be.
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

/// Value of one item after the nodes of a chain of plain steps.
std::uint64_t first_value(std::size_t item);
std::uint64_t stepped(std::uint64_t value, const std::string& node);
/// Value of a row of a `beside` node: of what is left of it, 0 for nothing, and the next input's
/// block.
std::uint64_t beside(std::uint64_t left, std::uint64_t value, std::int64_t row);
/// Number of the output by which an item leaves a `fork` node; -1, where it drops some, for none.
int way_of(std::size_t item, const std::string& node, int outputs, bool drops);
/// Where the items of a `numbers` node with `group` begin: each stands for the numbers up to the
/// next.
bool begins_group(std::size_t number, int group);
/// Which of several `numbers` nodes each number is of, with so many in each: one node after the
/// other or, `mixed`, in any order; all of an item with `group` are of one.
std::vector<std::size_t> owners_of(const std::vector<int>& counts, int group, bool mixed);
/// The blocks of an item, of which there are `blocks`, that number `k` of its parts is made of; in
/// a `parts` node.
std::vector<std::size_t> blocks_of_part(std::size_t k, std::size_t blocks);
/// Blocks that an `expand` or `divide` node with `blocks` gives for that block of an item: 1 to
/// `blocks`.
int block_count(std::size_t item, int blocks, int block = 0);
/// Whether a sub-item that a `divide` node makes ends with the piece of that value.
bool ends_sub_item(std::uint64_t value);

}  // namespace melflow::test
