#include "config/overrides.h"

#include <fmt/format.h>

#include "config/document.h"
#include "config/top_level.h"
#include "pipeline/base/text.h"
#include "pipeline/plan/missing_nodes.h"

namespace melflow {
namespace {

const auto kSetFile = std::make_shared<const std::string>("--set");

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void mark_all(Value& v, const Mark& mark) {
  v.set_mark(mark);
  for (Value& item : v.items()) mark_all(item, mark);
  for (Value::Entry& e : v.entries()) {
    e.key_mark = mark;
    mark_all(e.value, mark);
  }
}

// Does not read plain texts as YAML: a glob (**/*.wav) or a path with '#' is taken literally.
Value parse_value(const Assignment& set, const Mark& mark, Problems& problems) {
  Value v;
  if (set.value.find_first_of("[{\"'") == 0) {
    Document d = read_document(set.value, "--set");
    for (const Problem& p : d.problems.sorted())
      problems.add(mark,
                   fmt::format("{}: column {}: {}", excerpt(set.name), p.mark.column, p.message));
    v = std::move(d.root);
    mark_all(v, mark);
  } else if (set.value.empty()) {
    v = Value::missing();
  } else if (!is_null_text(set.value)) {
    v = Value::scalar(set.value);
  }
  mark_all(v, mark);
  return v;
}

class Override {
 public:
  Override(Value& root, const Assignment& set, Mark mark, Problems& problems)
      : root_(root), set_(set), mark_(std::move(mark)), problems_(problems) {}

  void apply() {
    std::vector<std::string> path = split(set_.name);
    for (const std::string& part : path)
      if (part.empty())
        return problem("this names no option; an option has a name like mel.n_mels");
    if (path.size() > kMostDepth)
      return problem(fmt::format("no option has a name of more than {} parts", kMostDepth));
    Value* at = start(path);
    if (at == nullptr) return;
    const std::string option = path.back();
    path.pop_back();
    for (const std::string& part : path) {
      Value* next = at->find(part);
      if (next == nullptr || !next->is_map()) next = &put(*at, part, Value::map({}, mark_));
      at = next;
    }
    put(*at, option, parse_value(set_, mark_, problems_));
  }

 private:
  void problem(const std::string& message) {
    problems_.add(mark_, fmt::format("{}: {}", excerpt(set_.name), message));
  }

  Value& put(Value& map, const std::string& key, Value value) {
    for (Value::Entry& e : map.entries()) {
      if (e.key != key) continue;
      e.key_mark = mark_;
      return e.value = std::move(value);
    }
    return map.set(key, std::move(value));
  }

  // Returns the map in which the rest of `path` starts; removes the part of the path it used.
  Value* start(std::vector<std::string>& path) {
    Value* graph = root_.find(kGraphKey);
    if (path.size() > 1 && path.front() == kGraphKey) path.erase(path.begin());
    Value* node = graph != nullptr ? graph->find(path.front()) : nullptr;
    if (node == nullptr && graph != nullptr && path.size() > 1 &&
        is_put_in(Registry::global(), path.front()))
      node = &graph->set(path.front(), Value::map({}, mark_));
    if (node == nullptr) return top_level(path, graph);
    if (path.size() == 1) {
      problem(fmt::format("this is a node; name one of its options, as in {}.queue", path.front()));
      return nullptr;
    }
    path.erase(path.begin());
    if (!node->is_map()) *node = Value::map({}, node->mark());
    return node;
  }

  Value* top_level(const std::vector<std::string>& path, const Value* graph) {
    TopLevelOptions options;
    Schema schema;
    options.describe(schema);
    std::vector<std::string> known = schema.names();
    for (const std::string& name : known)
      if (name == path.front()) return &root_;
    if (graph != nullptr)
      for (const Value::Entry& e : graph->entries()) known.push_back(e.key);
    std::string advice =
        advice_on(path.front(), {&schema}, Value::scalar(set_.value, mark_), known);
    if (path.front() == kGraphKey) {
      problem(
          "the graph is not set as a whole; write NODE.OPTION=VALUE for an option of one of its "
          "nodes, such as mel.n_mels=64");
      return nullptr;
    }
    if (advice.empty() && path.size() == 1)
      advice = "; write NODE.OPTION for an option of a node, such as mel.n_mels";
    problem(fmt::format("there is no node '{}' and no such key at the top level{}",
                        excerpt(path.front()), advice));
    return nullptr;
  }

  Value& root_;
  const Assignment& set_;
  Mark mark_;
  Problems& problems_;
};

}  // namespace

void apply_overrides(Value& root, const std::vector<Assignment>& sets, Problems& problems) {
  // Line 0 appears as just "--set"; the column distinguishes several overrides.
  int number = 0;
  for (const Assignment& set : sets) {
    const auto& file = set.given_at.file ? set.given_at.file : kSetFile;
    Override(root, set, {file, 0, ++number}, problems).apply();
  }
}

}  // namespace melflow
