#include "pipeline/base/text.h"

#include <cstdint>

#include <fmt/format.h>

#include "pipeline/base/secrets.h"

namespace melflow {
namespace {

// Returns the code point of a character that utf8_length() found.
char32_t code_of(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  if (length == 1) return byte(0);
  char32_t code = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

bool is_shown(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return false;
  // Direction marks, embeddings, overrides and isolates; line and paragraph separators; what is no
  // character, or in one place only: byte order marks, which readers of YAML may refuse.
  return c != 0x061C && c != 0x200E && c != 0x200F && !(c >= 0x2028 && c <= 0x202E) &&
         !(c >= 0x2066 && c <= 0x2069) && c != 0xFEFF && c != 0xFFFE && c != 0xFFFF;
}

// Appends the character at `at`, printable, and moves `at` past it.
void append(std::string& out, std::string_view text, std::size_t& at, bool keeps_lines) {
  const std::size_t length = utf8_length(text, at);
  if (length == 0) {
    out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[at++]));
    return;
  }
  const char32_t c = code_of(text, at, length);
  if (is_shown(c) || (keeps_lines && (c == '\n' || c == '\t')))
    out += text.substr(at, length);
  else if (c == '\n' || c == '\t')
    out += c == '\n' ? "\\n" : "\\t";
  else
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
  at += length;
}

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// Returns the first `most` bytes of a longer text, without a part of a character.
std::string_view beginning(std::string_view text, std::size_t most) {
  std::size_t end = most;
  while (end > 0 && most - end < 3 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
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

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    // Most of the text is plain ASCII.
    std::size_t end = at;
    while (end < text.size() && text[end] >= 0x20 && text[end] < 0x7F) ++end;
    out += text.substr(at, end - at);
    at = end;
    if (at < text.size()) append(out, text, at, true);
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return fmt::format("{}… ({} bytes)", beginning(text, most), text.size());
}

std::string kept_text(std::string text, std::size_t most) {
  constexpr std::size_t kOfNote = 48;  // at most
  if (text.size() <= most) return text;
  return fmt::format("{}… shortened ({} bytes)", beginning(text, most - kOfNote), text.size());
}

std::string one_line(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) append(out, text, at, false);
  return out;
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.find("://") == text.npos) return one_line(shortened(text, most));
  return one_line(shortened(without_secrets(text), most));
}

bool is_white_space(std::string_view character) {
  if (character.size() == 1) {
    const auto c = static_cast<unsigned char>(character.front());
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  }
  static constexpr std::string_view kOthers[] = {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001",
                                                 "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                                 "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
                                                 "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::find(std::begin(kOthers), std::end(kOthers), character) != std::end(kOthers);
}

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
    // Otherwise copies a backslash with the next character, as the second of a pair begins no
    // escape.
    out += is_byte ? "\\ufffd" : escape.substr(0, 2);
    at += is_byte ? 6 : 2;
  }
  return out;
}

}  // namespace melflow
