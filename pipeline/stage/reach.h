// The sinks downstream of each node. An error may cost an item all sinks or only those downstream
// of the node (on_failure), and a route takes an item away from the sinks of the other outputs; so
// the outcome of an item is recorded for each sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/stage/kept_items.h"

namespace melflow {

class NotesLeftOut;
class Stream;

/// A bit for each sink of a graph.
using SinkSet = std::uint64_t;
inline constexpr int kMostSinks = 64;

/// Threads: constant after its construction, so any. Lifetime: outlives all streams of the run.
class Reach {
 public:
  struct Node {
    SinkSet sinks = 0;                    ///< downstream of it; a sink: itself
    SinkSet lost_by_error = ~SinkSet{0};  ///< by an error in it: `sinks`, or all
    SinkSet may_lose = ~SinkSet{0};       ///< by an error in it or in a node downstream
    /// Whether this node is before the first branch and all blocks pass it, and every node before
    /// it, in order.
    bool is_in_trunk = false;
    std::size_t rank = 0;          ///< in the plan's order, with sinks after all other nodes
    std::vector<SinkSet> outside;  ///< for each named output: sinks that only other outputs reach
  };

  /// A sink that has items from an earlier run, as far as these are known.
  struct Keeper {
    int stage = -1;
    const KeptItems::Set* items = nullptr;
  };
  /// `sinks`: for each bit, the sink to notify of items that it does not get, or null. `kept` owns
  /// the sets of `keepers`.
  Reach(std::vector<Node> nodes, std::vector<NotesLeftOut*> sinks, std::vector<Keeper> keepers,
        std::shared_ptr<const KeptItems> kept);
  /// Returns a graph of `stages` nodes; the last `sinks` are sinks that take from all others.
  static Reach plain(int sinks, std::size_t stages);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] SinkSet all() const { return all_; }
  [[nodiscard]] const Node& of(int stage) const { return nodes_[static_cast<std::size_t>(stage)]; }
  /// The sinks to notify of items that do not reach them, one per bit; null for none.
  [[nodiscard]] const std::vector<NotesLeftOut*>& sinks() const { return sinks_; }
  /// Marks a new stream as taken by the sinks that have its record from an earlier run (KeptItems),
  /// so that nothing is made for them.
  void keep(Stream& stream) const;

 private:
  std::vector<Node> nodes_;
  std::vector<NotesLeftOut*> sinks_;
  std::vector<Keeper> keepers_;
  std::shared_ptr<const KeptItems> kept_;  // owns the sets of keepers_; may be null
  SinkSet all_ = 0;
};

}  // namespace melflow
