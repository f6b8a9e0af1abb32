#include "config/node_slips.h"

#include <fmt/format.h>

#include <utility>

#include "pipeline/text.h"

namespace melflow {
namespace {

// "'a'" without the quotes that YAML leaves where no space is before them.
std::string without_quotes(const std::string& text) {
  const bool is_quoted = text.size() > 1 && text.front() == text.back() &&
                         (text.front() == '\'' || text.front() == '"');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

bool is_node(const Value& v) {
  return v.is_null() || (v.is_map() && (v.find("stage") != nullptr || v.find("use") != nullptr));
}

}  // namespace

void mend_spaces(const std::string& name, Value& options, Problems& problems) {
  for (Value::Entry& e : options.entries()) {
    if (e.value.is_map()) mend_spaces(name, e.value, problems);
    const std::size_t sign = e.key.find_first_of(":=");
    if (!e.value.is_null() || sign == e.key.npos || sign == 0 || sign + 1 == e.key.size()) continue;
    const std::string key = trimmed(e.key.substr(0, sign)), value = trimmed(e.key.substr(sign + 1));
    problems.add(e.key_mark,
                 fmt::format("{}: '{}' has {}; write {}: {}", excerpt(name), excerpt(e.key),
                             e.key[sign] == ':' ? "no space after its ':'" : "'=' in place of ':'",
                             excerpt(key), excerpt(value)));
    e.value = Value::scalar(without_quotes(value), e.key_mark);
    e.key = key;
  }
}

std::vector<Value::Entry> mend_slips(const Value& graph, Problems& problems) {
  std::vector<Value::Entry> out;
  const std::vector<Value::Entry>& entries = graph.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.push_back(entries[i]);
    Value::Entry& node = out.back();
    if (node.value.is_null() && i + 1 < entries.size() && entries[i + 1].value.is_scalar()) {
      problems.add(entries[i + 1].key_mark,
                   fmt::format("{0}: '{1}' is an option of {0}: indent options further than the "
                               "name of their node, all by the same amount",
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
