#include "stages/output/formats/npy_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"

namespace melflow {

std::string npy_header(const std::string& descr, std::span<const std::uint64_t> shape,
                       std::size_t bytes) {
  constexpr std::size_t kFixed = 10;  // magic, version, length
  const std::string dict = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': ({}{}), }}",
                                       descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t least =
      (kFixed + dict.size() + 1 + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment;
  if (bytes == 0) bytes = least;
  if (bytes < least || bytes > kLongestNpyHeader)
    throw RunError(fmt::format("a .npy header of {} bytes has no room for {}", bytes, dict));
  const std::size_t length = bytes - kFixed;
  std::string out = "\x93NUMPY";
  out += {'\1', '\0', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  out += dict;
  out.resize(bytes - 1, ' ');
  return out + '\n';
}

}  // namespace melflow
