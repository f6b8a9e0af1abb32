#include "tests/pipeline/random_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "tests/support/expected_joints.h"
#include "tests/support/printing.h"

namespace melflow::test {
namespace {

constexpr std::size_t kMostStages = 9;
const std::string kDoneBefore = "done before";

std::vector<std::string> texts_of(const std::vector<Row>& rows) {
  std::vector<std::string> out;
  for (const Row& r : rows)
    out.push_back(fmt::format("{}.{}.{} {:x}", r.item, r.block, r.sub_item, r.value));
  return out;
}

}  // namespace

// ---- drawing ------------------------------------------------------------------------------------

RandomGraph::RandomGraph(unsigned seed, Draw what)
    : seed_(seed), plain_(what == Draw::plain), two_fates_(what == Draw::two_fates) {
  forks_ = one_in(2);
  pairs_ = one_in(3);
  items_ = one_in(12) ? draw() % 3 : upto(one_in(3) ? 150 : 40);
  sources_ = one_in(3) ? static_cast<int>(1 + upto(3)) : 1;
  draw_nodes();
  draw_bounds();
  draw_fates();
  draw_incident();
}

RandomGraph::Node& RandomGraph::add(std::string stage, int from, int output) {
  Node n;
  n.name = fmt::format("{}{}", stage == "numbers" ? "files" : stage, nodes_.size());
  n.stage = std::move(stage);
  n.from = from;
  n.output = output;
  if (from >= 0) {
    Node& up = nodes_[static_cast<std::size_t>(from)];
    ++up.readers;
    n.batches = up.batches || n.stage == "gather";
    n.cut = up.cut || expands(n);
    n.expanding = up.expanding + (expands(n) ? 1 : 0);
    n.shuffled = up.shuffled;
    n.thinned = up.thinned || n.stage == "thin";
    n.fails_branch = up.fails_branch;
    n.rows = up.rows;
  }
  if (from >= 0 && forks_ && one_in(two_fates_ ? 3 : 8)) {
    n.fails_branch = n.fails_branch || one_in(2);
    n.options.push_back({"on_failure", n.fails_branch ? "branch" : "file"});
  }
  nodes_.push_back(std::move(n));
  return nodes_.back();
}

// Adds stages one after the other, after the last one or, for a branch, after any; then the sinks.
void RandomGraph::draw_nodes() {
  for (int k = 0; k < sources_; ++k) add("numbers", -1);
  const bool cuts = one_in(3);
  if (sources_ > 1) draw_sources(cuts);
  if (cuts) draw_parts();
  owners_ = owners_of(of_source_, group_, mixed_);
  const auto cutter = static_cast<std::size_t>(cutter_);
  const std::size_t begun = cuts ? cutter : nodes_.size() - 1;
  const std::size_t stages = begun + draw() % (kMostStages + 1);
  while (nodes_.size() <= stages) {
    const std::size_t from =
        one_in(4) ? cutter + draw() % (nodes_.size() - cutter) : nodes_.size() - 1;
    if (nodes_[from].outputs > 0) continue;  // all of its outputs are taken
    const Node& up = nodes_[from];
    if (forks_ && !up.batches && one_in(4)) {
      draw_fork(static_cast<int>(from));
      continue;
    }
    if (pairs_ && !up.thinned && one_in(4)) {
      draw_pair(static_cast<int>(from));
      continue;
    }
    if (pairs_ && !up.batches && !up.shuffled && one_in(4)) {
      draw_meet(static_cast<int>(from));
      continue;
    }
    std::vector<std::string> may{"step", "step"};
    if (up.batches) {
      may = {"batch_step"};
    } else {
      may.insert(may.end(), {"thin", "gather"});
      if (!up.cut) may.insert(may.end(), {"expand", "expand", "divide"});
      if (up.cut && cutter_ == 0 && up.expanding < kMostExpanding && (!up.shuffled || one_in(12)))
        may.insert(may.end(), {"expand", "divide"});
      if ((!up.shuffled || one_in(12)) && !up.thinned)
        may.insert(may.end(), {"running", "running"});
    }
    draw_step(add(may[draw() % may.size()], static_cast<int>(from)));
  }
  for (std::size_t i = cutter, count = nodes_.size(); i < count; ++i)
    if (nodes_[i].outputs == 0 && (nodes_[i].readers == 0 || one_in(6)))
      add(nodes_[i].batches ? "batch_keep" : "keep", static_cast<int>(i));
}

// Returns a stage that takes numbers and may come before the node that cuts.
std::string RandomGraph::before_cut(const Node& up) const {
  const char* may[] = {"step", up.thinned || up.shuffled ? "step" : "running", "thin", "expand"};
  const bool may_expand = up.expanding < kMostExpanding && (!up.shuffled || !up.cut);
  return may[draw() % (may_expand ? 4 : 3)];
}

// Joins the items of several sources in one node, at once or after some stages of each source; or
// not, unless `meet`.
void RandomGraph::draw_sources(bool meet) {
  mixed_ = one_in(2);
  std::vector<int> ends;
  const bool at_once = one_in(3);
  for (int k = 0; k < sources_; ++k) {
    const int left =
        static_cast<int>(items_) - std::accumulate(of_source_.begin(), of_source_.end(), 0);
    of_source_.push_back(k + 1 == sources_ ? left : left / static_cast<int>(upto(4)));
    nodes_[static_cast<std::size_t>(k)].options.push_back({"mixed", mixed_ ? "true" : "false"});
    int end = k;
    for (std::uint64_t count = at_once ? 0 : draw() % 3; count > 0; --count) {
      const Node& up = at(end);
      draw_step(add(before_cut(up), end));
      if (meet && nodes_.back().shuffled) {  // parts are cut in order
        nodes_.back().shuffled = false;
        nodes_.back().options.pop_back();
      }
      end = static_cast<int>(nodes_.size()) - 1;
    }
    ends.push_back(end);
  }
  if (!meet && !at_once && one_in(3)) {
    // Each source has its own path.
    for (const int end : ends) draw_step(add("step", end));
    return;
  }
  Node& n = add(at_once && one_in(2) ? "step" : "join", ends.front());
  join(n, {ends.begin() + 1, ends.end()});
  if (n.stage == "step") draw_step(n);
}

// Adds inputs to a node.
void RandomGraph::join(Node& n, const std::vector<int>& more) {
  n.more = more;
  for (const int end : more) {
    Node& up = nodes_[static_cast<std::size_t>(end)];
    ++up.readers;
    n.cut = n.cut || up.cut;
    n.expanding = std::max(n.expanding, up.expanding);
    n.shuffled = n.shuffled || up.shuffled;
    n.thinned = n.thinned || up.thinned;
    inherit_on_failure(n, up);
  }
}

// Where failures of a node cost only a branch, those of later nodes must not cost more: whether
// these see an item that fails there would depend on timing where blocks overtake each other.
void RandomGraph::inherit_on_failure(Node& n, const Node& up) {
  if (!up.fails_branch) return;
  n.fails_branch = true;
  for (auto& [key, value] : n.options)
    if (key == "on_failure") value = "branch";
}

// Adds some stages and the one that cuts, without branches.
void RandomGraph::draw_parts() {
  group_ = static_cast<int>(upto(9));
  for (int k = 0; k < sources_; ++k)
    nodes_[static_cast<std::size_t>(k)].options.push_back({"group", std::to_string(group_)});
  for (std::uint64_t count = draw() % 4; count > 0; --count) {
    Node& n = add(before_cut(nodes_.back()), static_cast<int>(nodes_.size()) - 1);
    if (n.stage != "thin") n.size = upto(100);
    if (n.stage == "expand") n.blocks = static_cast<int>(upto(n.expanding > 1 ? 3 : 12));
  }
  cutter_ = static_cast<int>(nodes_.size());
  Node& cutter = add("parts", cutter_ - 1);
  cutter.size = upto(100);
  cutter.cut = true;
  cutter.thinned = false;
}

// Adds a fork and a node after each of its outputs; some of these paths are joined again.
void RandomGraph::draw_fork(int from) {
  Node& fork = add("fork", from);
  fork.outputs = static_cast<int>(upto(3));
  fork.drops = one_in(3);
  fork.options.push_back({"outputs", std::to_string(fork.outputs)});
  fork.options.push_back({"drops", fork.drops ? "true" : "false"});
  const int outputs = fork.outputs, place = static_cast<int>(nodes_.size()) - 1;
  std::vector<int> ends;
  for (int o = 0; o < outputs; ++o) {
    draw_step(add("step", place, o));
    ends.push_back(static_cast<int>(nodes_.size()) - 1);
  }
  if (ends.size() < 2 || one_in(2)) return;
  join(add("join", ends[0]), {ends[1]});
}

// Adds two or three paths of one or more nodes, and a node that pairs their outputs.
void RandomGraph::draw_pair(int from) {
  const bool gathers = !at(from).batches && one_in(2), are_batches = gathers || at(from).batches;
  const std::size_t ways = 1 + upto(2);
  const std::size_t dropping = forks_ && !at(from).batches && one_in(3) ? draw() % ways : ways;
  std::vector<int> ends;
  for (std::size_t way = 0; way < ways; ++way) {
    int end = from;
    const auto go_on = [&](const char* stage, int output = -1) -> Node& {
      Node& n = add(stage, end, output);
      end = static_cast<int>(nodes_.size()) - 1;
      return n;
    };
    if (way == dropping) {
      Node& fork = go_on("fork");
      fork.outputs = 1;
      fork.drops = true;
      fork.options.push_back({"outputs", "1"});
      fork.options.push_back({"drops", "true"});
      draw_step(go_on("step", 0));
    }
    for (unsigned count = upto(2); count > 0 && !at(end).batches; --count)
      draw_step(go_on(!at(end).shuffled && one_in(3) ? "running" : "step"));
    if (gathers) draw_step(go_on("gather"));
    if (at(end).batches && (!gathers || one_in(2))) draw_step(go_on("batch_step"));
    ends.push_back(end);
  }
  Node& pair = add(are_batches ? "batch_beside" : "beside", ends.front());
  pair.pairs = pair.batches = true;
  pair.more.assign(ends.begin() + 1, ends.end());
  pair.lag = static_cast<int>(draw() % 4);
  pair.rows += pair.lag * static_cast<int>(pair.more.size());
  pair.options.push_back({"lag", std::to_string(pair.lag)});
  for (const int end : pair.more) {
    ++nodes_[static_cast<std::size_t>(end)].readers;
    inherit_on_failure(pair, at(end));
  }
}

// Adds a node that emits every item by two outputs, and a node that joins what is made of both.
void RandomGraph::draw_meet(int from) {
  Node& twin = add("twin", from);
  twin.outputs = 2;
  twin.size = upto(100);
  const int place = static_cast<int>(nodes_.size()) - 1;
  std::vector<int> ends;
  for (int o = 0; o < 2; ++o) {
    add("step", place, o).size = upto(100);
    if (!at(from).thinned && one_in(2))
      add("running", static_cast<int>(nodes_.size()) - 1).size = upto(100);
    ends.push_back(static_cast<int>(nodes_.size()) - 1);
  }
  Node& meet = add("meet", ends[0]);
  meet.size = upto(100);
  meet.pairs = true;
  meet.more = {ends[1]};
  ++nodes_[static_cast<std::size_t>(ends[1])].readers;
  inherit_on_failure(meet, at(ends[1]));
}

void RandomGraph::draw_step(Node& n) {
  if (n.stage != "thin" && n.stage != "gather") n.size = upto(100);
  if (expands(n)) {
    n.blocks = static_cast<int>(upto(n.expanding > 1 ? 4 : 7));
    n.holes = one_in(3);
  }
  if (n.stage == "gather") n.options.push_back({"batch", std::to_string(upto(12))});
  if (n.stage == "batch_step") n.options.push_back({"rows", std::to_string(n.rows)});
  if ((n.stage == "step" || n.stage == "batch_step") && one_in(5)) {
    n.options.push_back({"any_order", "true"});
    n.shuffled = n.shuffled || n.cut;
  }
}

// Draws the fates of items: up to two nodes fail, skip or warn about an item, each at one of its
// blocks. Nodes before a node of parts do so at the first block, which stands for all parts.
void RandomGraph::draw_fates() {
  if (refused() >= 0 || (!two_fates_ && !one_in(2))) return;
  std::vector<std::size_t> nodes;
  for (auto i = static_cast<std::size_t>(sources_); i < nodes_.size(); ++i)
    if (nodes_[i].stage != "parts") nodes.push_back(i);
  if (nodes.empty()) return;
  const unsigned share = two_fates_ ? 1 : upto(6);
  for (std::size_t item = 0; item < items_; ++item) {
    if (!one_in(share) || done_.contains(item)) continue;
    for (int k = two_fates_ || one_in(2) ? 2 : 1; k > 0; --k) {
      Fate f;
      f.node = nodes[draw() % nodes.size()];
      const Node& n = nodes_[f.node];
      // An exception for a batch would concern all of its items, and a warning only the first.
      const Fate::Kind kinds[] = {Fate::failed, Fate::skipped, Fate::thrown, Fate::warned};
      f.kind = kinds[draw() % (n.batches && n.stage != "gather" ? 2 : 4)];
      const std::uint64_t which = draw();
      std::vector<Fate>& of_item = fates_[item];
      if (!comes_to(item, static_cast<int>(f.node)) ||
          std::any_of(of_item.begin(), of_item.end(),
                      [&](const Fate& other) { return other.node == f.node; }))
        continue;
      const std::vector<Placed> blocks = blocks_in(item, static_cast<int>(f.node));
      if (f.node >= static_cast<std::size_t>(cutter_)) {
        f.block = blocks[which % blocks.size()].block;
        f.place = blocks[which % blocks.size()].place;
      }
      of_item.push_back(std::move(f));
    }
  }
}

// Draws everything that must not change the result.
void RandomGraph::draw_bounds() {
  const unsigned largest = one_in(4) ? 1 : 7;
  const bool own_threads = one_in(3);
  const std::uint64_t files = draw() % 10;
  const std::string files_per_task = files < 3   ? "1"
                                     : files < 5 ? "auto"
                                                 : std::to_string(upto(64));
  const bool ahead = one_in(2) && cutter_ == 0;
  for (Node& n : nodes_) {
    const auto set = [&n](const char* key, std::string value) {
      n.options.push_back({key, std::move(value)});
    };
    const bool is_source = n.from < 0;
    const bool is_serial = is_source || n.stage == "gather";
    if (plain_) {
      set("concurrency", "1");
      if (is_source) set("files_per_task", "1");
      continue;
    }
    set("concurrency", std::to_string(is_serial ? 1 : upto(largest)));
    set("queue", one_in(3) ? "auto" : std::to_string(upto(largest)));
    if (!is_source && one_in(4)) set("start_at", one_in(2) ? "1" : "0.5");
    if (one_in(2)) set("work", std::to_string(upto(300)));
    n.elsewhere = n.stage == "step" && one_in(4);
    n.own_threads = !n.elsewhere && own_threads && one_in(3);
    if (n.elsewhere) set("elsewhere", "true");
    if (n.own_threads) set("own_threads", "true");
    if (is_source && ahead) set("ahead", "true");
    if (is_source) set("files_per_task", files_per_task);
  }
  if (!plain_ && one_in(5))
    for (std::size_t i = 0; i < items_; ++i)
      if (one_in(3)) done_.insert(i);
  workers_ = plain_ ? 1 : static_cast<int>(upto(8));
  memory_ = std::size_t{1} << 20;
  if (plain_ || one_in(3) || refused() >= 0) return;
  // Draws a budget between the least that is needed and one with room for several tasks.
  World world;
  Graph graph;
  describe(graph);
  const Plan plan = build_plan(graph.memory(memory_).spec, world.registry);
  const unsigned blocks = one_in(2) ? 4 : static_cast<unsigned>(16 * (workers_ + 1));
  memory_ = std::max<std::size_t>(plan.least_memory + draw() % 2, 1) +
            (one_in(4) ? 0 : draw() % blocks * plan.largest_block);
}

void RandomGraph::draw_incident() {
  if (plain_) return;
  const std::uint64_t kind = draw() % 8;
  if (kind > 2) return;
  where_ = draw() % nodes_.size();
  when_ = static_cast<int>(draw() % (3 * items_ + 1));
  incident_ = kind == 0 ? Incident::stop : kind == 1 ? Incident::abort : Incident::failures;
  most_failures_ = draw() % 8;
}

void RandomGraph::describe(Graph& graph) const {
  for (const Node& n : nodes_) {
    Graph::Options options = n.options;
    if (const auto k = static_cast<std::size_t>(&n - nodes_.data()); is_source(k))
      options.push_back(
          {"items", std::to_string(sources_ > 1 ? of_source_[k] : static_cast<int>(items_))});
    options.push_back({"size", std::to_string(n.size)});
    if (expands(n)) {
      if (n.expanding > 1) options.push_back({"nested", "true"});
      options.push_back({"blocks", std::to_string(n.blocks)});
      options.push_back({"holes", n.holes ? "true" : "false"});
    }
    if (n.stage.ends_with("keep")) options.push_back({"ordered", "true"});
    std::string from = n.from < 0 ? "" : at(n.from).name;
    if (n.output >= 0) from += fmt::format(".o{}", n.output);
    for (const int more : n.more) from += ", " + at(more).name;
    if (!n.more.empty()) from = "[" + from + "]";
    graph.node(n.name, n.stage, from, std::move(options));
  }
  graph.workers(workers_).memory(memory_);
  if (incident_ == Incident::failures) graph.max_failures(std::to_string(most_failures_));
}

std::string RandomGraph::text() const {
  const char* incidents[] = {"none", "stop", "abort", "failures"};
  std::string out = fmt::format(
      "seed {}: workers {}, memory {}, {} files, {} of them done before, {} with a fate, incident: "
      "{} in node {} after {}, max_failures {}\n",
      seed_, workers_, memory_, items_, done_.size(), fates_.size(),
      incidents[static_cast<int>(incident_)], where_, when_, most_failures_);
  Graph graph;
  describe(graph);
  for (const NodeSpec& n : graph.spec.nodes) {
    out += n.name + ":";
    for (const Value::Entry& e : n.options.entries())
      if (e.key != "node") out += fmt::format(" {}: {},", e.key, e.value.text());
    out.back() = '\n';
  }
  const char* kinds[] = {"failed", "thrown", "skipped", "", "", "warned"};
  for (const auto& [item, fates] : fates_) {
    out += fmt::format("item{}:", item);
    for (const Fate& f : fates)
      out += fmt::format(" {} at block {} of {},", kinds[f.kind], f.block, nodes_[f.node].name);
    out.back() = '\n';
  }
  return out;
}

// ---- the expected result ------------------------------------------------------------------------

bool RandomGraph::is_plain() const {
  return sources_ == 1 && std::none_of(nodes_.begin(), nodes_.end(), [](const Node& n) {
           return n.outputs > 0 || n.pairs || n.fails_branch;
         });
}

std::vector<int> RandomGraph::sinks() const {
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    if (at(i).readers == 0) out.push_back(i);
  return out;
}

bool RandomGraph::comes_to(std::size_t item, int node) const {
  const Node& n = at(node);
  if (n.from < 0) return sources_ == 1 || owners_[item] == static_cast<std::size_t>(node);
  for (const int more : n.more)
    if (comes_to(item, more) != n.pairs) return !n.pairs;
  if (n.output >= 0 && at(n.from).stage != "twin" &&
      way_of(item, at(n.from).name, at(n.from).outputs, at(n.from).drops) != n.output)
    return false;
  return comes_to(item, n.from);
}

bool RandomGraph::leads_to(int node, int sink) const {
  if (node == sink) return true;
  if (sink < 0) return false;
  const Node& n = at(sink);
  for (const int more : n.more)
    if (leads_to(node, more)) return true;
  return leads_to(node, n.from);
}

std::set<int> RandomGraph::parted(std::size_t item, int fork) const {
  const Node& n = at(fork);
  std::set<int> out;
  if (n.outputs == 0 || n.stage == "twin" || !comes_to(item, fork)) return out;
  const int way = way_of(item, n.name, n.outputs, n.drops);
  for (const int sink : sinks()) {
    bool leads = false;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
      leads = leads || (at(i).from == fork && at(i).output == way && leads_to(i, sink));
    if (leads_to(fork, sink) && !leads) out.insert(sink);
  }
  return out;
}

std::size_t RandomGraph::leader(std::size_t item) const {
  std::size_t first = item;
  while (cutter_ > 0 && !begins_group(first, group_)) --first;
  while (done_.contains(first)) ++first;
  return first;
}

bool RandomGraph::is_last_of_item(std::size_t item) const {
  for (++item; item < items_ && !begins_group(item, group_); ++item)
    if (!done_.contains(item)) return false;
  return true;
}

int RandomGraph::expanding_behind(int node) const {
  int most = 0;
  for (int i = node + 1; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& n = at(i);
    if (n.from == node || std::find(n.more.begin(), n.more.end(), node) != n.more.end())
      most = std::max(most, expanding_behind(i) + (expands(n) ? 1 : 0));
  }
  return most;
}

std::vector<RandomGraph::Placed> RandomGraph::blocks_in(std::size_t item, int node) const {
  const Node& n = at(node);
  int from = n.from;
  for (const int more : n.more)
    if (!n.pairs && comes_to(item, more)) from = more;
  return rows_at(item, n.pairs || expands(n) ? node : from);
}

std::size_t RandomGraph::place(int node) const {
  const std::string name =
      is_source(static_cast<std::size_t>(node)) ? source_name() : at(node).name;
  return static_cast<std::size_t>(std::find(order_.begin(), order_.end(), name) - order_.begin());
}

bool RandomGraph::is_in_trunk(int node) const {
  std::set<int> at_hand;
  for (int k = 0; k < sources_; ++k) at_hand.insert(k);
  while (!at_hand.contains(node)) {
    std::set<int> next;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      const bool takes = std::any_of(at(i).more.begin(), at(i).more.end(),
                                     [&](int more) { return at_hand.contains(more); });
      if (takes || at_hand.contains(at(i).from)) next.insert(i);
    }
    if (next.size() != 1) return false;
    at_hand = next;
  }
  return true;
}

bool RandomGraph::is_before(const Fate& a, const Fate& b) const {
  const auto place_of = [this](const Fate& f) {
    const int node = static_cast<int>(f.node);
    return place(node) + (at(node).readers == 0 ? order_.size() : 0);  // sinks come last
  };
  if (is_in_trunk(static_cast<int>(a.node)) && is_in_trunk(static_cast<int>(b.node)))
    return std::pair(a.place, place_of(a)) < std::pair(b.place, place_of(b));
  return std::pair(place_of(a), a.place) < std::pair(place_of(b), b.place);
}

std::set<int> RandomGraph::cost_of(int node) const {
  std::set<int> out;
  for (const int sink : sinks())
    if (!at(node).fails_branch || leads_to(node, sink)) out.insert(sink);
  return out;
}

std::vector<RandomGraph::Fate> RandomGraph::fates_of(std::size_t item) const {
  std::vector<Fate> said;
  const auto say = [&](std::size_t of, bool before_cut) {
    const auto it = fates_.find(of);
    if (it == fates_.end()) return;
    for (const Fate& f : it->second)
      if ((f.node < static_cast<std::size_t>(cutter_)) == before_cut) {
        said.push_back(f);
        if (f.kind != Fate::warned) said.back().lost = cost_of(static_cast<int>(f.node));
      }
  };
  if (done_.contains(item)) return said;
  say(leader(item), true);
  say(item, false);
  // A warning about the whole item belongs to its last part.
  if (!is_last_of_item(item))
    std::erase_if(said, [this](const Fate& f) {
      return f.kind == Fate::warned && f.node < static_cast<std::size_t>(cutter_);
    });
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    if (std::set<int> lost = parted(item, i); !lost.empty())
      said.push_back({static_cast<std::size_t>(i), Fate::parted, 0, std::move(lost)});
  Fate source{0, Fate::of_a_source};
  for (const int sink : sinks())
    if (sources_ > 1 && !leads_to(static_cast<int>(owners_[item]), sink)) source.lost.insert(sink);
  if (!source.lost.empty()) said.push_back(source);
  std::stable_sort(said.begin(), said.end(),
                   [this](const Fate& a, const Fate& b) { return is_before(a, b); });
  std::vector<Fate> out;
  for (const Fate& f : said) {
    std::set<int> left = cost_of(static_cast<int>(f.node));
    for (const Fate& other : said)
      if (is_before(other, f) || (f.kind == Fate::warned && !is_before(f, other)))
        for (const int sink : other.lost) left.erase(sink);
    if (!left.empty()) out.push_back(f);
  }
  return out;
}

bool RandomGraph::is_lost_to(std::size_t item, int sink) const {
  const std::vector<Fate> fates = fates_of(item);
  return std::any_of(fates.begin(), fates.end(),
                     [sink](const Fate& f) { return f.lost.contains(sink); });
}

// Returns the rows that a node emits, or a sink takes, for an item that reaches it.
std::vector<RandomGraph::Placed> RandomGraph::rows_at(std::size_t item, int node) const {
  const Node& n = at(node);
  if (n.from < 0) return {{{item, 0, first_value(item)}}};
  if (n.pairs) {
    std::vector<Placed> rows = rows_at(item, n.from);
    for (Placed& r : rows) r.value = beside(0, r.value, r.row);
    for (std::size_t k = 1; k <= n.more.size(); ++k) {
      const std::vector<Placed> in = rows_at(item, n.more[k - 1]);
      const std::size_t late = k * static_cast<std::size_t>(n.lag);
      for (std::size_t p = 0; p < rows.size(); ++p) {
        std::size_t other = p;
        while (other < p + late && other + 1 < in.size() &&
               in[other + 1].sub_item == rows[p].sub_item)
          ++other;
        rows[p].value = beside(rows[p].value, in[other].value, rows[p].row);
      }
    }
    return rows;
  }
  int from = n.from;
  for (const int more : n.more)
    if (comes_to(item, more)) from = more;
  std::vector<Placed> in = rows_at(node == cutter_ ? leader(item) : item, from);
  if (n.output == 1 && at(n.from).stage == "twin")
    for (Placed& r : in) r.value = mix(r.value, 1);
  std::vector<Placed> rows;
  if (n.stage == "parts") {
    for (const std::size_t block : blocks_of_part(item - leader(item), in.size()))
      rows.push_back({{item, static_cast<int>(rows.size()), mix(in[block].value, item)},
                      rows.size(),
                      static_cast<int>(rows.size())});
    return rows;
  }
  if (n.stage == "step" || n.stage == "batch_step") {
    rows = in;
    for (Placed& r : rows) r.value = stepped(r.value, n.name);
  } else if (n.stage == "thin") {
    for (const Placed& r : in)
      if (&r == &in.back() || r.sub_item != (&r + 1)->sub_item || r.block % 2 == 0)
        rows.push_back(r);
  } else if (n.stage == "running") {
    std::uint64_t sum = 0;
    rows = in;
    for (Placed& r : rows) {
      if (&r != rows.data() && r.sub_item != (&r - 1)->sub_item) sum = 0;
      sum = mix(sum, r.value);
      r.value = stepped(sum, n.name);
    }
  } else if (expands(n)) {
    const std::uint64_t step = std::uint64_t{1} << (20 * expanding_behind(node));
    std::size_t sub_item = 0;
    int row = 0;
    for (const Placed& r : in) {
      const bool ends = &r == &in.back() || r.sub_item != (&r + 1)->sub_item;
      const int count = block_count(item, n.blocks, r.block);
      std::uint64_t place = r.place;
      for (int k = 0; k < count; ++k) {
        if (n.holes && k % 3 == 0 && k + 1 < count) continue;
        const int block = static_cast<int>(rows.size());
        Placed& out = rows.emplace_back(r);
        out.block = block;
        out.value = mix(stepped(r.value, n.name), static_cast<std::uint64_t>(block));
        out.place = std::exchange(place, place + step);
        out.row = row++;
        const bool is_last = ends && k + 1 == count;
        if (n.stage == "divide") out.sub_item = sub_item;
        if (!is_last && (n.stage == "expand" || !ends_sub_item(out.value))) continue;
        ++sub_item;
        row = 0;
      }
    }
  } else {
    rows = in;
  }
  return rows;
}

// Returns the rows of an item that reach the sink.
std::vector<Row> RandomGraph::rows_of(std::size_t item, std::size_t sink) const {
  const int node = static_cast<int>(sink);
  if (!comes_to(item, node) || is_lost_to(item, node)) return {};
  const std::vector<Placed> rows = rows_at(item, node);
  return {rows.begin(), rows.end()};
}

// Formats the remark as test_graph does: "item3 failed step2 failed here".
std::optional<std::string> RandomGraph::remark_of(std::size_t item) const {
  const auto line = [item](const char* outcome, const std::string& node, const std::string& why) {
    return fmt::format("item{} {} {} {}", item, outcome, node, why);
  };
  if (done_.contains(item))
    return item % 2 == 0 ? std::nullopt : std::optional(line("skipped", "", kDoneBefore));
  const std::vector<int> all = sinks();
  const bool is_taken =
      std::any_of(all.begin(), all.end(), [&](int sink) { return !is_lost_to(item, sink); });
  const std::vector<Fate> fates = fates_of(item);
  // A failure precedes a skip, and a skip an item's leaving by another path; then the first counts.
  const Fate* main = nullptr;
  std::map<std::size_t, std::pair<std::string, std::string>> noted;  // by the node's place
  const auto note = [&](const Fate& f, const std::string& text) {
    noted[place(static_cast<int>(f.node))] = {nodes_[f.node].name, text};
  };
  for (const Fate& f : fates) {
    if (f.kind == Fate::warned)
      note(f, "noted here");
    else if (main == nullptr || std::max(f.kind, Fate::thrown) < std::max(main->kind, Fate::thrown))
      main = &f;
  }
  const bool is_thrown = main != nullptr && main->kind == Fate::thrown;
  const bool is_failed = main != nullptr && (main->kind == Fate::failed || is_thrown);
  const std::string why = is_thrown ? "unexpected error: thrown here" : "failed here";
  if (is_failed) note(*main, "is not in every output: " + why);
  if (is_taken && !noted.empty()) {
    std::string text;
    for (const auto& [at, said] : noted)
      text += text.empty() ? said.second : "; " + said.first + ": " + said.second;
    return line("ok", noted.begin()->second.first, text);
  }
  if (main == nullptr || is_taken) return std::nullopt;
  const std::string& node = nodes_[main->node].name;
  if (is_failed) return line("failed", node, why);
  return line("skipped", node, main->kind == Fate::skipped ? "skipped here" : "goes elsewhere");
}

// ---- running it ---------------------------------------------------------------------------------

void RandomGraph::hang_in(World& world, Incident incident, std::atomic<int>& calls,
                          Gate& now) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    world.hooks[i == 0 ? source_name() : nodes_[i].name] =
        [this, i, incident, &calls, &now](const Number& n,
                                          ItemContext* context) -> std::optional<ItemError> {
      if (i == where_ && (incident == Incident::stop || incident == Incident::abort) &&
          calls++ >= when_) {
        if (incident == Incident::abort) throw RunError("the end");  // and in every later call
        now.open();
      }
      const auto it = fates_.find(n.item);
      if (it == fates_.end()) return {};
      for (const Fate& f : it->second) {
        if (f.node != i || f.block != n.block) continue;
        if (f.kind == Fate::skipped) return ItemError::skipped("skipped here");
        if (f.kind == Fate::failed) return ItemError::failed("failed here");
        if (f.kind == Fate::thrown) throw std::runtime_error("thrown here");
        context->warn("noted here");
      }
      return {};
    };
  world.on_start[nodes_.back().name] = [this](RunContext& run) { close_done(run); };
}

void RandomGraph::close_done(RunContext& run) const {
  for (std::size_t i : done_)
    if (i % 2 == 0)
      run.ledger.close(i, Outcome::ok, -1, "");
    else
      run.ledger.close(i, Outcome::skipped, -1, kDoneBefore);
}

int RandomGraph::refused() const {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& n = at(i);
    const bool needs_order = n.stage == "running" || n.stage == "parts" || expands(n);
    if (needs_order && n.from >= 0 && at(n.from).shuffled) return i;
  }
  return -1;
}

void RandomGraph::check_refusal() const {
  World world;
  Graph graph;
  describe(graph);
  const std::string& name = at(refused()).name;
  try {
    make_plan(graph, world);
    FAIL_CHECK(name << " gets blocks in any order");
  } catch (const ConfigError& e) {
    CHECK(std::string(e.what()).find(name + ".from: ") != std::string::npos);
    CHECK(std::string(e.what()).find("takes the blocks of a file in order") != std::string::npos);
  }
}

void RandomGraph::check() const {
  INFO(text());
  if (refused() >= 0) return check_refusal();
  World world;
  // Failing items are dropped from queues, which no stage can see.
  world.check_edges = fates_.empty() && incident_ == Incident::none && is_plain();
  std::atomic<int> calls{0};
  Gate now;
  hang_in(world, incident_, calls, now);
  Graph graph;
  describe(graph);
  Outcomes outcomes;
  {
    Plan plan = make_plan(graph, world);
    for (const PlanNode& n : plan.nodes) order_.push_back(n.name);
    Runner runner(std::move(plan));
    std::thread stopper;
    if (incident_ == Incident::stop)
      stopper = std::thread([&] {
        now.wait();
        runner.stop();
      });
    outcomes.report = runner.run();
    outcomes.remarks = runner.remarks();
    now.open();
    if (stopper.joinable()) stopper.join();
  }
  check_run(outcomes, world);
  CHECK(world.live.now() == 0);
  check_edges(outcomes.report);
  if (incident_ == Incident::none)
    check_complete(world, outcomes);
  else
    check_partial(world, outcomes);
}

void RandomGraph::check_edges(const RunReport& report) const {
  std::vector<JointNode> nodes{{source_name(), -1, !nodes_[0].own_threads}};
  const auto place = [this](int node) { return std::max(node - sources_ + 1, 0); };
  for (auto i = static_cast<std::size_t>(sources_); i < nodes_.size(); ++i) {
    const Node& n = nodes_[i];
    nodes.push_back({n.name, place(n.from), !n.own_threads && !n.elsewhere, {}});
    for (const int more : n.more) nodes.back().more.push_back(place(more));
  }
  CHECK(joints_of(report) == expected_joints(nodes));
}

void RandomGraph::check_complete(World& world, const Outcomes& outcomes) const {
  const RunReport& r = outcomes.report;
  // Where no item is ok, the run failed.
  const bool is_lost = r.counts.ok == 0 && r.counts.found > 0;
  CHECK(r.error.empty() == !is_lost);
  CHECK(r.ending == (is_lost ? Ending::failed : Ending::complete));
  CHECK(r.counts.not_run == 0);
  std::vector<std::string> remarks, expected;
  for (const Remark& m : outcomes.remarks)
    remarks.push_back(fmt::format("{} {} {} {}", m.name, melflow::to_text(m.entry.outcome),
                                  m.entry.stage, m.entry.reason));
  for (std::size_t i = 0; i < items_; ++i)
    if (auto text = remark_of(i)) expected.push_back(*text);
  CHECK(remarks == expected);
  for (std::size_t s = 0; s < nodes_.size(); ++s) {
    if (nodes_[s].readers > 0) continue;
    CAPTURE(nodes_[s].name);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < items_; ++i) {
      if (done_.contains(i)) continue;
      const std::vector<Row> own = rows_of(i, s);
      rows.insert(rows.end(), own.begin(), own.end());
    }
    CHECK(texts_of(world.rows(nodes_[s].name)) == texts_of(rows));
  }
  std::set<std::size_t> begun;
  for (std::size_t i = 0; i < items_; ++i)
    if (!done_.contains(i)) begun.insert(leader(i));
  CHECK(stage(r, source_name()).items_out == begun.size());
  if (!fates_.empty() || !is_plain()) return;
  for (const Node& n : nodes_)
    if (n.from >= 0)
      CHECK(stage(r, n.name).items_in ==
            stage(r, nodes_[static_cast<std::size_t>(n.from)].name).items_out);
}

// Whatever was in flight: an item is ok in every sink, with all of its rows, or in none.
void RandomGraph::check_partial(World& world, const Outcomes& outcomes) const {
  const RunReport& r = outcomes.report;
  const bool too_many = incident_ == Incident::failures && r.counts.failed > most_failures_;
  const bool is_lost = r.counts.ok == 0 && r.counts.found > 0 && r.counts.not_run == 0;
  if (incident_ == Incident::abort && r.error == "the end") {
    CHECK(r.ending == Ending::failed);
  } else if (is_lost && !too_many) {
    CHECK(r.error.find("nothing is written") != std::string::npos);
    CHECK(r.ending == Ending::failed);
  } else if (too_many) {
    CHECK(r.error.find("max_failures") != std::string::npos);
    CHECK(r.ending == Ending::failed);
  } else {
    CHECK(r.error == "");
    CHECK(r.ending == (r.counts.not_run > 0 ? Ending::stopped : Ending::complete));
  }
  for (const Remark& m : outcomes.remarks) {
    const std::string text = fmt::format("{} {} {} {}", m.name, melflow::to_text(m.entry.outcome),
                                         m.entry.stage, m.entry.reason);
    CHECK(text == remark_of(m.index).value_or("nothing"));
  }
  const auto done = static_cast<std::size_t>(
      std::count_if(done_.begin(), done_.end(), [](std::size_t i) { return i % 2 == 0; }));
  std::set<std::size_t> taken;
  for (std::size_t s = 0; s < nodes_.size(); ++s) {
    if (nodes_[s].readers > 0) continue;
    CAPTURE(nodes_[s].name);
    const std::vector<Row>& rows = world.rows(nodes_[s].name);
    std::set<std::size_t> items;
    for (const Row& row : rows) items.insert(row.item);
    taken.insert(items.begin(), items.end());
    if (is_plain()) CHECK(items.size() == r.counts.ok - done);
    std::vector<Row> expected;
    for (std::size_t i : items) {
      CHECK_FALSE(is_lost_to(i, static_cast<int>(s)));
      const std::vector<Row> own = rows_of(i, s);
      expected.insert(expected.end(), own.begin(), own.end());
    }
    CHECK(rows == expected);
  }
  CHECK(taken.size() == r.counts.ok - done);
  // Items that are ok are in every sink that they reach.
  for (const std::size_t item : taken)
    for (const int s : sinks())
      if (!rows_of(item, static_cast<std::size_t>(s)).empty()) {
        const std::vector<Row>& rows = world.rows(at(s).name);
        CHECK(std::any_of(rows.begin(), rows.end(),
                          [item](const Row& row) { return row.item == item; }));
      }
}

}  // namespace melflow::test
