// Texts of any bytes in JSON, which holds UTF-8 alone: others are {"hex": "636166e9"}.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace melflow {

inline std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) out += fmt::format("{:02x}", c);
  return out;
}

/// The text that a value of JSON stands for, of any class of nlohmann's. Throws its exceptions.
template <class Json>
std::string bytes_of(const Json& json) {
  if (json.is_string()) return json.template get<std::string>();
  const auto hex = json.at("hex").template get<std::string>();
  std::string out(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned char c = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, c, 16);
    out[i] = static_cast<char>(c);
  }
  return out;
}

}  // namespace melflow
