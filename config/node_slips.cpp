#include "config/node_slips.h"

#include <fmt/format.h>

#include <utility>

#include "pipeline/text.h"

namespace melflow {
namespace {

// "stage:decode" in { }, which is a key without a value there.
void mend_spaces(const std::string& node, Value& options, Problems& problems) {
  for (Value::Entry& e : options.entries()) {
    const std::size_t colon = e.key.find(':');
    if (!e.value.is_null() || colon == e.key.npos || colon == 0 || colon + 1 == e.key.size())
      continue;
    problems.add(e.key_mark,
                 fmt::format("{}: '{}' has no space after its ':'", excerpt(node), excerpt(e.key)));
    e.value = Value::scalar(e.key.substr(colon + 1), e.key_mark);
    e.key.resize(colon);
  }
}

bool is_node(const Value& v) {
  return v.is_null() || (v.is_map() && (v.find("stage") != nullptr || v.find("use") != nullptr));
}

}  // namespace

std::vector<Value::Entry> mend_slips(const Value& graph, Problems& problems) {
  std::vector<Value::Entry> out;
  const std::vector<Value::Entry>& entries = graph.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.push_back(entries[i]);
    Value::Entry& node = out.back();
    if (node.value.is_null() && i + 1 < entries.size() && entries[i + 1].value.is_scalar()) {
      problems.add(entries[i + 1].key_mark,
                   fmt::format("{}: '{}' is one of its options: they begin further right than its "
                               "name, all in the same column",
                               excerpt(node.key), excerpt(entries[i + 1].key)));
      node.value = Value::map({}, node.key_mark);
      while (i + 1 < entries.size() && !is_node(entries[i + 1].value))
        node.value.entries().push_back(entries[++i]);
    }
    if (node.value.is_map()) mend_spaces(node.key, node.value, problems);
  }
  return out;
}

}  // namespace melflow
