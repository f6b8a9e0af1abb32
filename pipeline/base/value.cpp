#include "pipeline/base/value.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

using Json = nlohmann::json;

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

Value Value::missing() {
  Value v;
  v.missing_ = true;
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

// JSON allows only UTF-8; other bytes of a path are kept unchanged.
std::string quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && utf8_length(text, at) > 0) at += utf8_length(text, at);
    const std::string quoted = Json(text.substr(begin, at - begin)).dump();
    out.append(quoted, 1, quoted.size() - 2);
    if (at < text.size()) out += text[at++];
  }
  return out + '"';
}

// The character test excludes text around a number that JSON ignores, such as spaces.
bool is_json_number(std::string_view text) {
  return text.find_first_not_of("+-.0123456789eE") == text.npos && Json::accept(text);
}

}  // namespace

// Written by hand because hashes of features depend on the text: the library's one-line form has no
// spaces, and it formats numbers in its own way.
std::string to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar: {
      const std::string& t = value.text();
      const bool bare =
          !value.quoted() && (t == "true" || t == "false" || t == "null" || is_json_number(t));
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
