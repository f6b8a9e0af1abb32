// Parses JSON of anyone: lists, outputs, jobs.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace melflow {

/// Whether brackets are nested more than 100 levels deep, which neither melflow nor a list has.
inline bool is_deep_json(std::string_view text) {
  constexpr int kDeepest = 100;
  int depth = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      is_in_string = !is_in_string;
    else if (is_in_string)
      i += c == '\\' ? 1 : 0;
    else if (c == '[' || c == '{')
      depth += 1;
    else if (c == ']' || c == '}')
      depth -= 1;
    if (depth > kDeepest) return true;
  }
  return false;
}

/// Parses JSON; discarded where it is none, or nested so deeply that code which copies or writes it
/// by recursion could run out of stack.
template <class Json = nlohmann::json>
Json parse_shallow(std::string_view text) {
  if (is_deep_json(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace melflow
