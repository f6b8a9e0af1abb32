// A cell of a table of comma-separated values, by RFC 4180.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

inline std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

}  // namespace melflow
