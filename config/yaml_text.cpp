#include "config/yaml_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "config/top_level.h"

namespace melflow {
namespace {

// Numbers, sizes and words: where a value may be one of these, it must not be in quotes.
bool is_plain(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto may_be = [&](std::string_view others, char c) {
    return is_word(static_cast<unsigned char>(c)) || others.find(c) != others.npos;
  };
  return !text.empty() && may_be("-+.", text.front()) && may_be("%", text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return may_be("_.+-%", c); });
}

std::string flow(const Value& value) {
  std::string out;
  switch (value.kind()) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return !value.quoted() && is_plain(value.text()) ? value.text() : yaml_quoted(value.text());
    case Value::Kind::list:
      for (const Value& item : value.items()) out += (out.empty() ? "" : ", ") + flow(item);
      return "[" + out + "]";
    case Value::Kind::map:
      for (const Value::Entry& e : value.entries())
        out += (out.empty() ? "" : ", ") + to_json(Value::scalar(e.key, {}, true)) + ": " +
               flow(e.value);
      return "{" + out + "}";
  }
  return out;
}

}  // namespace

// One dollar stands for itself where there are two.
std::string yaml_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return to_json(Value::scalar(std::move(out), {}, true));
}

std::string yaml_text(const Value& configuration) {
  std::string out;
  for (const Value::Entry& e : configuration.entries()) {
    if (e.key != kGraphKey || !e.value.is_map()) {
      out += e.key + ": " + flow(e.value) + "\n";
      continue;
    }
    out += e.key + ":\n";
    for (const Value::Entry& node : e.value.entries())
      out += "  " + node.key + ": " + flow(node.value) + "\n";
  }
  return out;
}

}  // namespace melflow
