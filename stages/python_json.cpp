#include "stages/python_json.h"

#include <algorithm>
#include <cctype>

namespace melflow {
namespace {

constexpr std::string_view kByteMark = "\xEF\xB7\x90";  // U+FDD0

// The number of the escape \uXXXX that a text begins with; -1 where it begins with none.
int escape_at(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  int out = 0;
  for (const char c : text.substr(2, 4)) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return -1;
    const int digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                          ? c - '0'
                          : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
    out = out * 16 + digit;
  }
  return out;
}

bool is_low_half(int code) { return code >= 0xDC00 && code <= 0xDFFF; }
bool is_high_half(int code) { return code >= 0xD800 && code <= 0xDBFF; }

}  // namespace

std::optional<std::string> with_marked_bytes(std::string_view json) {
  if (json.find(kByteMark) != json.npos) return std::nullopt;
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t plain = std::min(json.find('\\'), json.size());
    out.append(json.substr(0, plain));
    json.remove_prefix(plain);
    const int code = escape_at(json);
    std::size_t taken = std::min<std::size_t>(2, json.size());
    if (is_high_half(code) && is_low_half(escape_at(json.substr(6)))) taken = 12;
    if (code == 0xFDD0) return std::nullopt;
    if (code >= 0xDC80 && code <= 0xDCFF) {
      out.append("\\ufdd0\\u00");
      json.remove_prefix(4);
    } else {
      out.append(json.substr(0, taken));
      json.remove_prefix(taken);
    }
  }
  return out;
}

void restore_bytes(std::string& text) {
  for (std::size_t at = 0; (at = text.find(kByteMark, at)) != text.npos; ++at) {
    const std::size_t next = at + kByteMark.size();  // a character from U+0080 to U+00FF
    if (next + 1 >= text.size() || (text[next] & 0xFE) != 0xC2) continue;
    const auto byte = static_cast<char>((text[next] & 3) << 6 | (text[next + 1] & 0x3F));
    text.replace(at, next + 2 - at, 1, byte);
  }
}

std::optional<std::string> standard_json(std::string_view json) {
  constexpr std::string_view kNumbers[] = {"NaN", "Infinity", "-Infinity"};
  std::string out;
  bool is_in_text = false;
  for (std::size_t at = 0; at < json.size();) {
    const std::string_view rest = json.substr(at);
    std::string_view number;
    for (const std::string_view one : kNumbers)
      if (!is_in_text && rest.starts_with(one)) number = one;
    if (!number.empty()) {
      if (number == kNumbers[0])
        out += "null";
      else
        out.append("\"").append(number).append("\"");
      at += number.size();
      continue;
    }
    const std::size_t n = is_in_text && rest.front() == '\\' ? 2 : 1;
    if (rest.front() == '"') is_in_text = !is_in_text;
    out += rest.substr(0, n);
    at += n;
  }
  auto marked = with_marked_bytes(out);
  return marked && *marked != json ? marked : std::nullopt;
}

}  // namespace melflow
