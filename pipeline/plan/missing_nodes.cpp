#include "pipeline/plan/missing_nodes.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace melflow {
namespace {

bool has_option(const NodeSpec& node, const char* name) {
  return node.options.find(name) != nullptr;
}

class MissingNodes {
 public:
  MissingNodes(GraphSpec graph, const Registry& registry)
      : registry_(registry), graph_(std::move(graph)) {
    std::erase_if(graph_.nodes, [this](const NodeSpec& n) {
      const bool has_options_only =
          is_put_in(registry_, n.name) && !has_option(n, "stage") && !has_option(n, "from");
      if (has_options_only) options_.emplace(n.name, n);
      return has_options_only;
    });
  }

  GraphSpec filled() {
    if (!is_one_left_over())
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        Value* from = graph_.nodes[i].options.find("from");
        if (from == nullptr) continue;
        // By index, since nodes are inserted before this one.
        const std::size_t count = from->is_list() ? from->items().size() : 1;
        const StageInfo* info = end_of(graph_.nodes[i], true);
        if (info == nullptr || (count > 1 && !info->traits.joins && !info->traits.pairs)) continue;
        for (std::size_t k = 0; k < count; ++k) i += fill(i, k);
      }
    for (auto& [name, node] : options_) graph_.nodes.push_back(std::move(node));  // unused ones
    return std::move(graph_);
  }

 private:
  [[nodiscard]] const NodeSpec* find(const std::string& name) const {
    const auto it = std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                                 [&](const NodeSpec& n) { return n.name == name; });
    return it == graph_.nodes.end() ? nullptr : &*it;
  }
  // Returns the node of `from`: "route" for "route.long".
  [[nodiscard]] const NodeSpec* giver(const std::string& from) const {
    const NodeSpec* node = find(from);
    return node != nullptr || from.find('.') == from.npos ? node
                                                          : find(from.substr(0, from.rfind('.')));
  }
  [[nodiscard]] const StageInfo* stage_of(const NodeSpec& node) const {
    const Value* stage = node.options.find("stage");
    return stage != nullptr && stage->is_scalar() ? registry_.find(stage->text()) : nullptr;
  }
  // Returns the first or last stage of the chain that a written node stands for.
  [[nodiscard]] const StageInfo* end_of(const NodeSpec& node, bool is_first) const {
    const StageInfo* info = stage_of(node);
    if (info == nullptr || !info->expand) return info;
    const std::vector<NodeSpec> chain = info->expand(node);
    return stage_of(is_first ? chain.front() : chain.back());
  }
  // Returns the output type; for a node that passes any type on, its input's; void if unknown.
  [[nodiscard]] PortType given_by(const NodeSpec& node, std::size_t most = 0) const {
    const StageInfo* info = end_of(node, false);
    if (info == nullptr) return {};
    if (info->ports.empty()) return info->traits.out;
    const Value* from = node.options.find("from");
    if (from != nullptr && from->is_list() && !from->items().empty()) from = &from->items().front();
    const NodeSpec* up = from != nullptr && from->is_scalar() ? giver(from->text()) : nullptr;
    return up == nullptr || most > graph_.nodes.size() ? PortType{} : given_by(*up, most + 1);
  }

  // Whether a node of a stage that could be inserted was written, but no node takes its output.
  [[nodiscard]] bool is_one_left_over() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const NodeSpec& n) {
      const StageInfo* info = stage_of(n);
      if (info == nullptr || !info->is_put_in) return false;
      const auto takes = [&](const NodeSpec& reader) {
        const Value* from = reader.options.find("from");
        if (from == nullptr) return false;
        if (from->is_scalar()) return giver(from->text()) == &n;
        return std::any_of(from->items().begin(), from->items().end(), [&](const Value& item) {
          return item.is_scalar() && giver(item.text()) == &n;
        });
      };
      return std::none_of(graph_.nodes.begin(), graph_.nodes.end(), takes);
    });
  }

  // Inserts nodes before input k of node `reader`; returns their number.
  std::size_t fill(std::size_t reader, std::size_t k) {
    const auto named = [&]() -> Value& {
      Value& from = *graph_.nodes[reader].options.find("from");
      return from.is_list() ? from.items()[k] : from;
    };
    if (!named().is_scalar()) return 0;
    const NodeSpec* up = giver(named().text());
    const StageInfo* info = end_of(graph_.nodes[reader], true);
    if (up == nullptr || info == nullptr || !info->ports.empty() ||
        info->traits.kind == StageKind::source)
      return 0;
    std::size_t added = 0;
    for (const StageInfo* stage : stages_between(registry_, given_by(*up), info->traits.in, true)) {
      std::string& shared = put_in_[{stage->name, named().text()}];
      if (shared.empty()) {
        shared = free_name(stage->name, named().text());
        if (shared.empty()) return added;  // a later check reports the missing node
        NodeSpec node = made(shared, *stage, named());
        graph_.nodes.insert(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(reader),
                            std::move(node));
        ++reader;
        ++added;
      }
      const Mark mark = named().mark();
      named() = Value::scalar(shared);
      named().set_mark(mark);
    }
    return added;
  }

  [[nodiscard]] std::string free_name(const std::string& stage, std::string from) const {
    if (find(stage) == nullptr) return stage;
    std::replace(from.begin(), from.end(), '.', '_');
    const std::string other = stage + "_" + from;
    return find(other) == nullptr ? other : std::string();
  }

  [[nodiscard]] NodeSpec made(const std::string& name, const StageInfo& stage, const Value& from) {
    NodeSpec out{name, from.mark(), Value::map({}, from.mark())};
    if (auto own = options_.extract(name)) out = std::move(own.mapped());
    std::vector<Value::Entry> options = std::move(out.options.entries());
    out.options = Value::map({}, out.options.mark());
    Value written = Value::scalar(stage.name);
    written.set_mark(out.mark);
    out.options.set("stage", std::move(written));
    out.options.set("from", from);
    for (Value::Entry& e : options) out.options.entries().push_back(std::move(e));
    return out;
  }

  const Registry& registry_;
  GraphSpec graph_;
  std::map<std::string, NodeSpec> options_;                            // by stage name
  std::map<std::pair<std::string, std::string>, std::string> put_in_;  // by stage and input
};

}  // namespace

bool is_put_in(const Registry& registry, const std::string& name) {
  const StageInfo* info = registry.find(name);
  return info != nullptr && info->is_put_in;
}

std::vector<const StageInfo*> stages_between(const Registry& registry, const PortType& from,
                                             const PortType& to, bool of_put_in) {
  struct Way {
    PortType port;
    std::vector<const StageInfo*> stages;
  };
  std::vector<Way> ways{{from, {}}};
  const auto go_on = [&](std::size_t at, bool by_put_in) {
    for (const StageInfo* s : registry.all()) {
      const auto is_known = [&](const Way& w) { return w.port == s->traits.out; };
      const bool is_between =
          s->traits.kind == StageKind::transform || s->traits.kind == StageKind::combine;
      if (!is_between || s->is_put_in != by_put_in || s->runs_code || s->traits.pairs ||
          !s->ports.empty() || !(s->traits.in == ways[at].port) ||
          std::any_of(ways.begin(), ways.end(), is_known))
        continue;
      Way longer{s->traits.out, ways[at].stages};
      longer.stages.push_back(s);
      ways.push_back(std::move(longer));
    }
  };
  // A round for each number of stages that have to be written.
  for (std::size_t begin = 0; begin < ways.size();) {
    for (std::size_t at = begin; at < ways.size(); ++at) {
      if (ways[at].port == to) return ways[at].stages;
      go_on(at, true);
    }
    if (of_put_in) break;
    const std::size_t end = ways.size();
    for (std::size_t at = end; at-- > begin;) go_on(at, false);
    begin = end;
  }
  return {};
}

GraphSpec with_missing_nodes(const GraphSpec& graph, const Registry& registry) {
  return MissingNodes(graph, registry).filled();
}

}  // namespace melflow
