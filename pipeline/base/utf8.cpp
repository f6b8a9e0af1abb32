#include "pipeline/base/utf8.h"

#include <cstdint>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string utf8_or_escaped(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t n = utf8_length(json, at);
    if (n > 0)
      out += json.substr(at, n);
    else
      out += fmt::format("\\udc{:02x}", static_cast<std::uint8_t>(json[at]));
    at += n > 0 ? n : 1;
  }
  return out;
}

std::string without_escaped_bytes(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] != '\\') {
      out += json[at++];
      continue;
    }
    const std::string_view escape = json.substr(at, 6);
    const bool is_byte = escape.size() == 6 && escape.starts_with("\\udc") && escape[4] >= '8' &&
                         is_hex_digit(escape[4]) && is_hex_digit(escape[5]);
    // Otherwise with what it escapes: of two backslashes the second begins nothing.
    out += is_byte ? "\\ufffd" : escape.substr(0, 2);
    at += is_byte ? 6 : 2;
  }
  return out;
}

}  // namespace melflow
