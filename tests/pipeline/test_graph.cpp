#include "tests/pipeline/test_graph.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace melflow::test {

namespace {
Mark mark_at(int line, int column) {
  static const auto file = std::make_shared<const std::string>("test.yaml");
  return {file, line, column};
}

Value value_of(const std::string& text, Mark mark) {
  if (!text.starts_with('[')) return Value::scalar(text, std::move(mark));
  std::vector<Value> items;
  std::string item;
  for (char c : text.substr(1)) {
    if (c == ',' || c == ']') {
      if (!item.empty()) items.push_back(Value::scalar(item, mark));
      item.clear();
    } else if (c != ' ') {
      item += c;
    }
  }
  return Value::list(std::move(items), std::move(mark));
}
// The words of a text; a list is one word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out(1);
  bool is_list = false;
  for (const char c : text) {
    if (c == '[' || c == ']') is_list = c == '[';
    if (c != ' ' || is_list)
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}
}  // namespace

Graph& Graph::nodes(std::string_view text) {
  std::istringstream all{std::string(text)};
  for (std::string one; std::getline(all, one, ';');) {
    const std::vector<std::string> words = words_of(one);
    std::size_t at = 2;
    std::string from;
    if (words.size() > 3 && words[2] == "<") {
      from = words[3];
      at = 4;
    }
    Options options;
    for (; at < words.size(); ++at) {
      const std::size_t equals = words[at].find('=');
      options.emplace_back(words[at].substr(0, equals), words[at].substr(equals + 1));
    }
    node(words.at(0).substr(0, words[0].size() - 1), words.at(1), from, std::move(options));
  }
  return *this;
}

Graph& Graph::node(const std::string& name, const std::string& stage, const std::string& from,
                   Options options) {
  NodeSpec n;
  n.name = name;
  const int line = static_cast<int>(spec.nodes.size()) + 1;
  n.mark = mark_at(line, 3);
  n.options = Value::map({}, n.mark);
  if (!from.empty()) options.insert(options.begin(), {"from", from});
  if (!stage.empty()) options.insert(options.begin(), {"stage", stage});
  int column = 0;
  for (auto& [key, value] : options) {
    column += 10;
    n.options.entries().push_back(
        {key, value_of(value, mark_at(line, column + 5)), mark_at(line, column)});
  }
  if (n.options.find("node") == nullptr) n.options.set("node", Value::scalar(name));
  spec.nodes.push_back(std::move(n));
  return *this;
}

Graph& Graph::memory(std::size_t bytes) {
  spec.host_memory = Bytes{bytes};
  spec.memory_mark = mark_at(100, 9);
  return *this;
}

Graph& Graph::workers(int count) {
  spec.workers = count;
  return *this;
}

Graph& Graph::max_failures(const std::string& text) {
  const std::string why = OptionType<CountOrShare>::parse(Value::scalar(text), spec.max_failures);
  REQUIRE(why.empty());
  return *this;
}

Graph& Graph::set(const std::string& node, const std::string& key, const std::string& value) {
  for (NodeSpec& n : spec.nodes)
    if (n.name == node) n.options.set(key, value_of(value, n.mark));
  return *this;
}

Graph chain(int items, Graph::Options sink) {
  return Graph("files: numbers; a: step < files; b: step < a")
      .set("files", "items", std::to_string(items))
      .node("out", "keep", "b", std::move(sink));
}

// One file per task unless a test asks for more: most tests are about single items.
Plan make_plan(const Graph& graph, World& world) {
  Plan plan = build_plan(graph.spec, world.registry);
  PlanNode& source = plan.nodes.front();
  const std::string& written = plan.sources.empty() ? source.name : plan.sources.front().name;
  for (const NodeSpec& n : graph.spec.nodes)
    if (n.name == written && n.options.find("files_per_task") == nullptr) source.files_per_task = 1;
  const int files =
      source.files_per_task > 0 ? source.files_per_task : NodeOptions::kMostFilesOfAuto;
  for (PlanNode& n : plan.nodes) {
    NodeLog& log = world.log(n.name);
    log.concurrency = n.concurrency;
    log.queue = n.queue;
    log.is_source = n.from() < 0;
    if (n.from() >= 0) log.up = &world.log(plan.nodes[static_cast<std::size_t>(n.from())].name);
    const bool combines = n.info->traits.kind == StageKind::combine;
    log.comes_again = combines || n.info->traits.expands;
    log.items_per_task = log.is_source ? files : combines ? 1 : log.up->items_per_task;
  }
  return plan;
}

Outcomes run(const Graph& graph, World& world) {
  Outcomes out;
  {
    Runner runner(make_plan(graph, world));
    out.report = runner.run();
    out.remarks = runner.remarks();
  }
  CHECK(world.live.now() == 0);
  check_run(out, world);
  return out;
}

void check_run(const Outcomes& outcomes, World& world) {
  const RunReport& r = outcomes.report;
  for (const std::string& text : world.complaints()) FAIL_CHECK(text);
  CHECK(r.counts.ok + r.counts.skipped + r.counts.failed + r.counts.not_run == r.counts.found);
  CHECK(r.memory_peak <= r.memory_budget);
  CHECK(world.live.peak() <= r.memory_budget);
  CAPTURE(r.error);
  CHECK(r.error.find("a bug in") == std::string::npos);
  for (const std::string& text : r.warnings)
    CHECK_MESSAGE(text.find("had declared") == text.npos, text);
  if (r.stages.empty()) return;

  const double span = r.graph_seconds;
  CHECK(span > 0);
  CHECK(span <= r.wall_seconds);
  for (const StageReport& s : r.stages) {
    CAPTURE(s.name);
    CHECK(s.peak_concurrency <= s.concurrency);
    CHECK(world.log(s.name).probe.peak() <= s.concurrency);
    if (world.log(s.name).started > 0) CHECK(s.peak_concurrency >= 1);
    CHECK(s.time.busy >= 0);
    CHECK(s.time.waiting_input >= 0);
    CHECK(s.time.blocked_output >= 0);
    CHECK(s.time.waiting_core >= 0);
    CHECK(s.time.idle_after_end >= 0);
    CHECK(std::abs(s.time.total() - span * s.concurrency) <= 1e-6 * span * s.concurrency);
  }
  for (const EdgeReport& e : r.edges) {
    CAPTURE(e.to);
    int places = 0;  // capacity of all edges that lead there
    for (const EdgeReport& other : r.edges)
      if (other.to == e.to) places += other.capacity;
    CHECK(e.max_depth <= static_cast<std::size_t>(places));
    CHECK(e.mean_depth <= static_cast<double>(e.max_depth) + 1e-9);
    CHECK(e.mean_depth >= 0);
  }
  for (std::size_t i = 1; i < outcomes.remarks.size(); ++i)
    CHECK(outcomes.remarks[i - 1].index < outcomes.remarks[i].index);
}

const StageReport& stage(const RunReport& report, const std::string& name) {
  for (const StageReport& s : report.stages)
    if (s.name == name) return s;
  throw std::out_of_range(name);
}

const EdgeReport& edge_to(const RunReport& report, const std::string& name) {
  for (const EdgeReport& e : report.edges)
    if (e.to == name) return e;
  throw std::out_of_range(name);
}

}  // namespace melflow::test
