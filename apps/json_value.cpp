#include "apps/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/base/text.h"

namespace melflow {

using Json = nlohmann::ordered_json;

// Converts value by value: JSON text with a path that is not UTF-8 could not be parsed.
Json json_of(const Value& value) {
  if (value.is_list()) {
    Json out = Json::array();
    for (const Value& item : value.items()) out.push_back(json_of(item));
    return out;
  }
  if (value.is_map()) {
    Json out = Json::object();
    for (const Value::Entry& e : value.entries()) out[e.key] = json_of(e.value);
    return out;
  }
  Json scalar = Json::parse(to_json(value), nullptr, false);
  return scalar.is_discarded() ? Json(value.text()) : scalar;
}

Value value_of(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(value_of(item));
    return Value::list(std::move(items));
  }
  if (json.is_object()) {
    Value out = Value::map({});
    for (const auto& [key, item] : json.items()) out.set(key, value_of(item));
    return out;
  }
  return Value::scalar(json.is_string() ? json.get<std::string>() : json.dump());
}

std::string json_string(std::string_view text) {
  // Nearly every path is plain ASCII; there may be half a million of them.
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  std::string out = "\"";
  if (std::all_of(text.begin(), text.end(), is_plain)) return out.append(text) += '"';
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && utf8_length(text, end) > 0) end += utf8_length(text, end);
    if (end > begin) {
      const std::string quoted = Json(text.substr(begin, end - begin)).dump();
      out.append(quoted, 1, quoted.size() - 2);
    }
    if (end < text.size()) out += utf8_or_escaped(text.substr(end++, 1));
    begin = end;
  }
  return out += '"';
}

}  // namespace melflow
