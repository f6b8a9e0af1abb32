#include "pipeline/graph_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace melflow {
namespace {

// A stage that would fit between two ports, as advice.
std::string bridge(const Registry& registry, const StageTraits& up, const StageTraits& down) {
  for (const StageInfo* s : registry.all())
    if (s->traits.in == up.out && s->traits.out == down.in)
      return fmt::format("; put a {} between them", s->name);
  return "";
}

void check_pair(GraphDraft& graph, const NodeDraft& up, const NodeDraft& d) {
  const NodeSpec& spec = *d.spec;
  if (d.common.start_at > 0 && up.info->traits.lends)
    graph.error(mark_of(spec, "start_at"),
                fmt::format("{}.start_at: what {} ({}) gives holds a place on a device, and those "
                            "that come after wait for one; set it where batches come in, before "
                            "the device",
                            spec.name, up.spec->name, up.info->name));
  if (up.info->traits.kind == StageKind::sink)
    graph.error(mark_of(spec, "from"), fmt::format("{}.from: {} ({}) is a sink and gives nothing",
                                                   spec.name, up.spec->name, up.info->name));
  else if (!(up.info->traits.out == d.info->traits.in))
    graph.error(
        mark_of(spec, "from"),
        fmt::format("{}.from: {} takes {}, but {} ({}) gives {}{}", spec.name, d.info->name,
                    d.info->traits.in.name, up.spec->name, up.info->name, up.info->traits.out.name,
                    bridge(graph.registry, up.info->traits, d.info->traits)));
}

// Reports a stage that cuts items into blocks behind another such stage, or behind a batch. An item
// that waits for memory keeps later blocks of its stream in the queue before the stage; behind
// another such stage these could fill the queue and keep out the oldest item. And a block cut from
// a batch would belong to all of its items.
void check_expansion(GraphDraft& graph) {
  for (const NodeDraft& d : graph.nodes) {
    if (d.info == nullptr || !d.info->traits.expands) continue;
    for (int at = d.from.empty() ? -1 : d.from.front(); at >= 0;) {
      const NodeDraft& up = graph.node(at);
      if (up.info != nullptr && up.info->traits.expands)
        graph.error(
            d.spec->mark,
            fmt::format("{}: {} cuts its input into blocks, but it comes after {} ({}), which "
                        "does so already; only one of them in a row can make progress within "
                        "the memory budget",
                        d.spec->name, d.info->name, up.spec->name, up.info->name));
      if (up.info != nullptr && up.info->traits.kind == StageKind::combine)
        graph.error(
            d.spec->mark,
            fmt::format("{}: {} cuts its input into blocks, but it comes after {} ({}), which "
                        "puts several items into one; put it before",
                        d.spec->name, d.info->name, up.spec->name, up.info->name));
      at = up.from.empty() ? -1 : up.from.front();
    }
  }
}

// A stage that gives items of its own.
std::string some_source(const Registry& registry) {
  for (const StageInfo* s : registry.all())
    if (s->traits.kind == StageKind::source) return s->name;
  return "a source, of which this program has none";
}

}  // namespace

void check_input(GraphDraft& graph, const NodeDraft& node) {
  if (node.info == nullptr || node.behind) return;
  const NodeSpec& spec = *node.spec;
  const bool is_source = node.info->traits.kind == StageKind::source;
  if (is_source && !node.common.from.empty())
    graph.error(mark_of(spec, "from"), fmt::format("{}.from: {} is a source and takes no input",
                                                   spec.name, node.info->name));
  if (is_source && node.common.start_at > 0)
    graph.error(
        mark_of(spec, "start_at"),
        fmt::format("{}.start_at: {} is a source and has no queue", spec.name, node.info->name));
  if (!is_source && node.common.files_per_task)
    graph.error(mark_of(spec, "files_per_task"),
                fmt::format("{}.files_per_task: {} is no source; the source says how many files go "
                            "together",
                            spec.name, node.info->name));
  if (!is_source && node.common.from.empty())
    graph.error(spec.mark, fmt::format("{}: 'from' is missing: which node's output does it take? "
                                       "It takes {}",
                                       spec.name, node.info->traits.in.name));
  if (node.common.from.size() > 1)
    graph.error(
        mark_of(spec, "from"),
        fmt::format("{}.from: {} takes one input, {} are given ({})", spec.name, node.info->name,
                    node.common.from.size(), fmt::join(node.common.from, ", ")));
  for (int from : node.from)
    if (graph.node(from).info != nullptr && !is_source) check_pair(graph, graph.node(from), node);
}

// Follows `from` upwards; a node met again on its own way is in a cycle.
bool check_cycles(GraphDraft& graph) {
  std::set<int> reported;
  for (int start = 0; start < static_cast<int>(graph.nodes.size()); ++start) {
    std::vector<int> way;
    int at = start;
    while (std::find(way.begin(), way.end(), at) == way.end()) {
      way.push_back(at);
      const NodeDraft& d = graph.node(at);
      if (d.from.empty()) break;
      at = d.from.front();
    }
    if (at != start || graph.node(start).from.empty() || reported.contains(at)) continue;
    std::string text;
    for (int n : way) {
      reported.insert(n);
      text.insert(0, graph.node(n).spec->name + " -> ");
    }
    const NodeSpec& spec = *graph.node(start).spec;
    graph.error(
        mark_of(spec, "from"),
        fmt::format("{}.from: the graph has a cycle: {} -> {}; data goes from the source to the "
                    "sinks, so one of these has to take another node's output",
                    spec.name, spec.name, text.substr(0, text.size() - 4)));
  }
  return !reported.empty();
}

void check_shape(GraphDraft& graph) {
  // A node without input may be the one that should take an output, so that is not reported as
  // well.
  const bool are_connected =
      std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const NodeDraft& d) {
        return d.info != nullptr &&
               (d.info->traits.kind == StageKind::source || d.behind || !d.from.empty());
      });
  int sources = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const NodeDraft& d = graph.node(i);
    if (d.info == nullptr) continue;
    if (d.info->traits.kind == StageKind::source && ++sources > 1)
      graph.error(d.spec->mark,
                  fmt::format("{}: a graph has one source, this is the second", d.spec->name));
    if (d.info->traits.kind == StageKind::sink) continue;
    if (are_connected && graph.readers_of(i).empty() && !d.behind)
      graph.error(d.spec->mark,
                  fmt::format("{}: nothing takes its output ({}); a graph ends in a sink",
                              d.spec->name, d.info->traits.out.name));
  }
  const bool all_known = std::all_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const NodeDraft& d) { return d.info != nullptr; });
  if (sources == 0 && all_known)
    graph.error(graph.spec.nodes.empty() ? Mark{} : graph.spec.nodes.front().mark,
                fmt::format("the graph has no source; it starts with a stage such as {}",
                            some_source(graph.registry)));
  check_expansion(graph);
}

}  // namespace melflow
