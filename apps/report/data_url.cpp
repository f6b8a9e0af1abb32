#include "apps/report/data_url.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace melflow {

std::string data_url(std::string_view type, std::string_view bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = fmt::format("data:{};base64,", type);
  out.reserve(out.size() + bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = i; k < i + 3; ++k)
      group = group << 8U | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63U];
  }
  return out;
}

}  // namespace melflow
