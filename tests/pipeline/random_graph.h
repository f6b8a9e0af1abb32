// A random plan of test stages, the fates of its items, and the expected result, which is computed
// item by item without a graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/pipeline/test_graph.h"

namespace melflow::test {

/// An event that ends a run early, after some calls of one node.
enum class Incident {
  none,
  stop,      ///< Runner::stop() from another thread
  abort,     ///< an error of the whole run
  failures,  ///< more failing items than max_failures allows
};

/// The variety of graphs to draw.
enum class Draw {
  all,
  plain,     ///< a graph with one of everything, that nothing ends early
  two_fates  ///< two nodes fail, skip or warn about each item
};

class RandomGraph {
 public:
  /// Makes the same graph, bounds and fates of items for the same seed.
  explicit RandomGraph(unsigned seed, Draw what = Draw::all);

  /// Runs the graph and checks its results against the computed ones.
  void check() const;
  /// Describes the graph, one option per line, for failure messages.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Incident incident() const { return incident_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }

 private:
  struct Node {
    std::string name, stage;
    int from = -1;
    int output = -1;        // which output of a fork before it this node takes
    std::vector<int> more;  // further inputs of a join or a pairing node
    bool pairs = false;     // whether it needs an input from each of them
    int lag = 0;            // of a pairing node
    int rows = 1;           // most rows of an item in an emitted block
    int outputs = 0;        // of a fork
    bool drops = false;
    bool fails_branch = false;  // inherited from earlier nodes
    Graph::Options options;
    bool own_threads = false, elsewhere = false;
    std::size_t size = 0;  // the largest payload that it makes [bytes]
    int blocks = 1;        // of an expand node
    bool holes = false;
    int expanding = 0;  // number of such nodes on the path up to this one
    // Properties of its output; `shuffled`: blocks of an item in any order.
    bool batches = false, cut = false, shuffled = false, thinned = false;
    int readers = 0;
  };
  /// A row with its position in the order of cutting: everything cut from one block precedes
  /// everything cut from the next.
  struct Placed : Row {
    std::uint64_t place = 0;
    int row = 0;  // within its sub-item
  };
  /// The outcome of one block of an item in a node, or the sinks that a fork takes an item away
  /// from.
  struct Fate {
    enum Kind { failed, thrown, skipped, parted, of_a_source, warned };
    std::size_t node = 0;
    Kind kind = skipped;
    int block = 0;
    std::set<int> lost = {};  // sinks that lose the item
    std::uint64_t place = 0;  // Placed::place of the block
  };

  Node& add(std::string stage, int from, int output = -1);
  void join(Node& node, const std::vector<int>& more);
  static void inherit_on_failure(Node& node, const Node& up);
  void draw_sources(bool meet);
  [[nodiscard]] std::string before_cut(const Node& up) const;
  void draw_parts();
  void draw_fork(int from);
  void draw_pair(int from);
  void draw_meet(int from);
  void draw_nodes();
  void draw_step(Node& n);
  void draw_bounds();
  void draw_fates();
  void draw_incident();
  void describe(Graph& graph) const;

  [[nodiscard]] unsigned upto(unsigned n) const { return 1 + static_cast<unsigned>(draw() % n); }
  [[nodiscard]] bool one_in(unsigned n) const { return draw() % n == 0; }
  [[nodiscard]] std::uint64_t draw() const { return mix(seed_, drawn_++); }

  void hang_in(World& world, Incident incident, std::atomic<int>& calls, Gate& now) const;
  void close_done(RunContext& run) const;
  [[nodiscard]] const Node& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] bool is_source(std::size_t node) const {
    return node < static_cast<std::size_t>(sources_);
  }
  /// The name of the plan's node that makes the items.
  [[nodiscard]] std::string source_name() const {
    return sources_ > 1 ? "sources" : nodes_[0].name;
  }
  /// Whether an item without fates reaches the node.
  [[nodiscard]] bool comes_to(std::size_t item, int node) const;
  [[nodiscard]] bool leads_to(int node, int sink) const;
  /// Returns the sinks from which a fork takes the item away.
  [[nodiscard]] std::set<int> parted(std::size_t item, int fork) const;
  /// Returns the first of the lines that form one item and are not done before.
  [[nodiscard]] std::size_t leader(std::size_t item) const;
  [[nodiscard]] bool is_last_of_item(std::size_t item) const;
  /// Returns the blocks of an item without fates that reach a node.
  [[nodiscard]] std::vector<Placed> blocks_in(std::size_t item, int node) const;
  /// Returns the node's position in the plan, from 0.
  [[nodiscard]] std::size_t place(int node) const;
  /// Whether every block passes this node and all nodes before it in sequence.
  [[nodiscard]] bool is_in_trunk(int node) const;
  [[nodiscard]] bool is_before(const Fate& a, const Fate& b) const;
  /// Returns the sinks that lose an item which fails in the node.
  [[nodiscard]] std::set<int> cost_of(int node) const;
  /// Returns the fates of an item that count, in order of precedence.
  [[nodiscard]] std::vector<Fate> fates_of(std::size_t item) const;
  /// Whether its fates keep an item from that sink.
  [[nodiscard]] bool is_lost_to(std::size_t item, int sink) const;
  [[nodiscard]] bool is_plain() const;  // has no forks, pairs, several sources or on_failure
  [[nodiscard]] std::vector<int> sinks() const;
  [[nodiscard]] std::vector<Placed> rows_at(std::size_t item, int node) const;
  /// Returns the largest number of consecutive nodes after this one that cut blocks.
  [[nodiscard]] int expanding_behind(int node) const;
  [[nodiscard]] std::vector<Row> rows_of(std::size_t item, std::size_t sink) const;
  [[nodiscard]] std::optional<std::string> remark_of(std::size_t item) const;
  [[nodiscard]] static bool expands(const Node& n) {
    return n.stage == "expand" || n.stage == "divide";
  }
  /// Returns a node that needs blocks in order and gets them in any order; -1 for none.
  [[nodiscard]] int refused() const;
  void check_refusal() const;
  void check_complete(World& world, const Outcomes& outcomes) const;
  void check_partial(World& world, const Outcomes& outcomes) const;
  void check_edges(const RunReport& report) const;

  const unsigned seed_;
  const bool plain_, two_fates_;
  mutable std::uint64_t drawn_ = 0;
  std::vector<Node> nodes_;
  mutable std::vector<std::string> order_;  // order of the nodes in the plan
  bool forks_ = false, pairs_ = false;
  int group_ = 1;   // lines per item, where there is a node of parts
  int cutter_ = 0;  // the node of parts
  std::size_t items_ = 0;
  int sources_ = 1;                  // number of sources, which are the first nodes
  std::vector<int> of_source_;       // number of items of each source
  bool mixed_ = false;               // whether the items of sources come in mixed order
  std::vector<std::size_t> owners_;  // source of each item
  std::map<std::size_t, std::vector<Fate>> fates_;
  std::set<std::size_t> done_;  // lines that are closed before the run
  std::size_t memory_ = 0;
  int workers_ = 1;
  Incident incident_ = Incident::none;
  std::size_t where_ = 0;  // node of the incident
  int when_ = 0;           // calls of that node before it
  std::size_t most_failures_ = 0;
};

}  // namespace melflow::test
