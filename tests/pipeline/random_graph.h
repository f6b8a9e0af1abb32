// A random plan of test stages and what happens to its run, and what has to come of it: computed
// item by item, without a graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/pipeline/test_graph.h"

namespace melflow::test {

/// What ends a run early, after some calls of one node.
enum class Incident {
  none,
  stop,      ///< Runner::stop() from another thread
  abort,     ///< an error of the whole run
  failures,  ///< more failing items than max_failures allows
};

/// What is drawn.
enum class Draw {
  all,
  plain,     ///< the same graph with one of everything, and nothing that ends it early
  two_fates  ///< two nodes have something to say of each item
};

class RandomGraph {
 public:
  /// The same graph, bounds and fates of items for the same seed.
  explicit RandomGraph(unsigned seed, Draw what = Draw::all);

  /// Runs it and checks everything that is said here of such a run.
  void check() const;
  /// The graph, an option a line, for failure messages.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Incident incident() const { return incident_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }

 private:
  struct Node {
    std::string name, stage;
    int from = -1;
    int output = -1;        // of a fork before it: which of them it takes
    std::vector<int> more;  // of a join or a node that pairs: what else it takes
    bool pairs = false;     // it takes what each of them gives
    int lag = 0;            // of such a node
    int rows = 1;           // of an item in a block that it gives, at most
    int outputs = 0;        // of a fork
    bool drops = false;
    bool fails_branch = false;  // as it is behind others
    Graph::Options options;
    bool own_threads = false, elsewhere = false;
    std::size_t size = 0;  // the greatest payload it makes [bytes]
    int blocks = 1;        // of an expand node
    bool holes = false;
    int expanding = 0;  // such nodes in a row, up to this one
    // Of what it gives; `shuffled`: blocks of an item in any order.
    bool batches = false, cut = false, shuffled = false, thinned = false;
    int readers = 0;
  };
  /// A row with its place in the order of what is cut from what: what is made of one block comes
  /// before the next one.
  struct Placed : Row {
    std::uint64_t place = 0;
    int row = 0;  // in its sub-item
  };
  /// What a node says of one block of an item, and what a way that parts from others takes from
  /// sinks.
  struct Fate {
    enum Kind { failed, thrown, skipped, parted, of_a_source, warned };
    std::size_t node = 0;
    Kind kind = skipped;
    int block = 0;
    std::set<int> lost = {};  // sinks
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
  /// The node of the plan that makes the items.
  [[nodiscard]] std::string source_name() const {
    return sources_ > 1 ? "sources" : nodes_[0].name;
  }
  /// An item that nothing becomes of comes to the node.
  [[nodiscard]] bool comes_to(std::size_t item, int node) const;
  [[nodiscard]] bool leads_to(int node, int sink) const;
  /// The sinks that a fork takes it away from.
  [[nodiscard]] std::set<int> parted(std::size_t item, int fork) const;
  /// The first of the lines that come as one item, and that are not done before.
  [[nodiscard]] std::size_t leader(std::size_t item) const;
  [[nodiscard]] bool is_last_of_item(std::size_t item) const;
  /// The blocks that a node is given of it, where nothing becomes of it.
  [[nodiscard]] std::vector<Placed> blocks_in(std::size_t item, int node) const;
  /// The node's place in the plan, from 0.
  [[nodiscard]] std::size_t place(int node) const;
  /// Whether every block passes the node, and those before it, one after the other.
  [[nodiscard]] bool is_in_trunk(int node) const;
  [[nodiscard]] bool is_before(const Fate& a, const Fate& b) const;
  /// The sinks that an error in the node takes an item from.
  [[nodiscard]] std::set<int> cost_of(int node) const;
  /// What is said of it and counts, in the order of what decides.
  [[nodiscard]] std::vector<Fate> fates_of(std::size_t item) const;
  /// Whether its fates keep it from that sink.
  [[nodiscard]] bool is_lost_to(std::size_t item, int sink) const;
  [[nodiscard]] bool is_plain() const;  // without forks, pairs, several sources and on_failure
  [[nodiscard]] std::vector<int> sinks() const;
  [[nodiscard]] std::vector<Placed> rows_at(std::size_t item, int node) const;
  /// How many nodes that cut blocks are one behind the other behind this one.
  [[nodiscard]] int expanding_behind(int node) const;
  [[nodiscard]] std::vector<Row> rows_of(std::size_t item, std::size_t sink) const;
  [[nodiscard]] std::optional<std::string> remark_of(std::size_t item) const;
  [[nodiscard]] static bool expands(const Node& n) {
    return n.stage == "expand" || n.stage == "divide";
  }
  /// A node that needs blocks in order and gets them in any; -1 where there is none.
  [[nodiscard]] int refused() const;
  void check_refusal() const;
  void check_complete(World& world, const Outcomes& outcomes) const;
  void check_partial(World& world, const Outcomes& outcomes) const;
  void check_edges(const RunReport& report) const;

  const unsigned seed_;
  const bool plain_, two_fates_;
  mutable std::uint64_t drawn_ = 0;
  std::vector<Node> nodes_;
  mutable std::vector<std::string> order_;  // of the plan
  bool forks_ = false, pairs_ = false;
  int group_ = 1;   // lines of an item, where there is a node of parts
  int cutter_ = 0;  // that node
  std::size_t items_ = 0;
  int sources_ = 1;                  // the first nodes
  std::vector<int> of_source_;       // how many of the items are of each
  bool mixed_ = false;               // in any order
  std::vector<std::size_t> owners_;  // which source an item is of
  std::map<std::size_t, std::vector<Fate>> fates_;
  std::set<std::size_t> done_;  // lines that are closed before the run
  std::size_t memory_ = 0;
  int workers_ = 1;
  Incident incident_ = Incident::none;
  std::size_t where_ = 0;  // of the incident
  int when_ = 0;           // calls of that node before
  std::size_t most_failures_ = 0;
};

}  // namespace melflow::test
