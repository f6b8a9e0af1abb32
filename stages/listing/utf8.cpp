#include "stages/listing/utf8.h"

#include <cstdint>

#include <fmt/format.h>

namespace melflow {
namespace {

// Bytes of the character that begins at `at`; 0 where none does (Unicode 15, table 3-7).
std::size_t character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : 0;
  };
  const auto continues = [&](std::size_t i, int low = 0x80, int high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const int b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return continues(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF)
    return continues(1, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  if (b >= 0xF0 && b <= 0xF4)
    return continues(1, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF) && continues(2) &&
                   continues(3)
               ? 4
               : 0;
  return 0;
}

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string utf8_or_escaped(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t n = character(json, at);
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
