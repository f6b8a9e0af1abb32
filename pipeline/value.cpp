#include "pipeline/value.h"

#include <charconv>

#include <fmt/format.h>

#include "pipeline/text.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestPath = 4096;  // the system's own limit [bytes]

}  // namespace

std::string Mark::str() const {
  if (!file) return {};
  const std::string name = excerpt(*file, kLongestPath);
  return line <= 0 ? name : fmt::format("{}:{}:{}", name, line, column);
}

Value Value::scalar(std::string text, Mark mark, bool quoted) {
  Value v;
  v.kind_ = Kind::scalar;
  v.text_ = std::move(text);
  v.quoted_ = quoted;
  v.mark_ = std::move(mark);
  return v;
}

Value Value::list(std::vector<Value> items, Mark mark) {
  Value v;
  v.kind_ = Kind::list;
  v.items_ = std::move(items);
  v.mark_ = std::move(mark);
  return v;
}

Value Value::map(std::vector<Entry> entries, Mark mark) {
  Value v;
  v.kind_ = Kind::map;
  v.entries_ = std::move(entries);
  v.mark_ = std::move(mark);
  return v;
}

const Value* Value::find(std::string_view key) const {
  for (const Entry& e : entries_)
    if (e.key == key) return &e.value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value*>(this)->find(key));
}

Value& Value::set(std::string key, Value value) {
  kind_ = Kind::map;
  if (Value* old = find(key)) return *old = std::move(value);
  Mark mark = value.mark();
  entries_.push_back({std::move(key), std::move(value), std::move(mark)});
  return entries_.back().value;
}

namespace {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

// JSON's own number grammar is narrower than strtod's: no "inf", "0x", leading '+' or '.5'.
bool is_json_number(std::string_view t) {
  if (t.empty()) return false;
  std::size_t i = t[0] == '-' ? 1 : 0;
  if (i >= t.size() || t[i] < '0' || t[i] > '9') return false;
  if (t[i] == '0' && i + 1 < t.size() && t[i + 1] >= '0' && t[i + 1] <= '9') return false;
  if (t.back() == '.' || t.find(".e") != t.npos || t.find(".E") != t.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
  return error == std::errc{} && end == t.data() + t.size();
}

}  // namespace

std::string to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar: {
      const std::string& t = value.text();
      const bool bare = !value.quoted() &&
                        (t == "true" || t == "false" || t == "null" || is_json_number(t));
      return bare ? t : quote(t);
    }
    case Value::Kind::list: {
      std::string out = "[";
      for (const Value& v : value.items()) {
        if (out.size() > 1) out += ", ";
        out += to_json(v);
      }
      return out + "]";
    }
    case Value::Kind::map: {
      std::string out = "{";
      for (const Value::Entry& e : value.entries()) {
        if (out.size() > 1) out += ", ";
        out += quote(e.key) + ": " + to_json(e.value);
      }
      return out + "}";
    }
  }
  return "null";
}

}  // namespace melflow
