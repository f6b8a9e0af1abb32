// The format, versions 1.0 to 3.0 (numpy.lib.format): "\x93NUMPY", two bytes of version, the length
// of the dict in two bytes (version 1.0) or four, a Python dict as text, the data.

#include "stages/files/npy_array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::size_t kMost = 1 << 24, kMostInVector = 1 << 20;
constexpr std::size_t kLongestHeader = 1 << 16;

struct Layout {
  std::string type;  // as numpy writes it: "<f8"
  std::vector<std::uint64_t> shape;
  std::size_t count = 1;
  std::size_t begin = 0;  // first byte of the data
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw RunError(path + ": " + what +
                 "; numpy.save writes what is expected of a float32 or float64 array");
}

std::size_t little_endian(std::string_view bytes) {
  std::size_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

// Returns the text between `before` and `after` that follows this key of the dict.
std::optional<std::string_view> entry(std::string_view dict, std::string_view key, char before,
                                      char after) {
  std::size_t at = dict.find(key);
  if (at == dict.npos) return std::nullopt;
  at = dict.find_first_not_of(' ', at + key.size());
  if (at == dict.npos || dict[at] != before) return std::nullopt;
  const std::size_t end = dict.find(after, at + 1);
  if (end == dict.npos) return std::nullopt;
  return dict.substr(at + 1, end - at - 1);
}

Layout layout_of(const std::string& path, std::string_view file) {
  constexpr std::size_t kVersion = 6, kLength = 8;
  if (!file.starts_with("\x93NUMPY") || file.size() < kLength + 4)
    refuse(path, "is not a .npy file");
  const std::size_t width = file[kVersion] == 1 ? 2 : 4;
  const std::size_t length = little_endian(file.substr(kLength, width));
  const std::size_t begin = kLength + width + length;
  if (length > kLongestHeader || begin > file.size()) refuse(path, "ends within its header");
  const std::string_view dict = file.substr(kLength + width, length);
  const auto type = entry(dict, "'descr':", '\'', '\''), shape = entry(dict, "'shape':", '(', ')');
  if (!type || !shape) refuse(path, "has a header without type or shape");
  if (dict.find("'fortran_order': True") != dict.npos)
    refuse(path, "is in Fortran order; convert it by numpy.ascontiguousarray");
  Layout out{.type = std::string(*type), .shape = {}, .begin = begin};
  const char* at = shape->data();
  const char* const stop = at + shape->size();
  const auto skip = [&](char c) {
    while (at != stop && (*at == ' ' || *at == c)) ++at;
  };
  for (skip(' '); at != stop; skip(',')) {
    std::uint64_t axis = 0;
    const auto [end, error] = std::from_chars(at, stop, axis);
    if (error != std::errc{} || axis > kMost || (out.count *= axis) > kMost)
      refuse(path, fmt::format("has the shape ({})", excerpt(*shape)));
    out.shape.push_back(axis);
    at = end;
  }
  return out;
}

template <class Number>
std::vector<double> numbers(std::string_view data, std::size_t count) {
  std::vector<Number> values(count);
  if (count > 0) std::memcpy(values.data(), data.data(), count * sizeof(Number));
  return {values.begin(), values.end()};
}

NpyArray numbers_of(std::string_view file, const std::string& path, bool may_be_integer) {
  const Layout layout = layout_of(path, file);
  const bool is_double = layout.type == "<f8", is_integer = layout.type == "<i8" && may_be_integer;
  if (!is_double && !is_integer && layout.type != "<f4")
    refuse(path, "has values of type " + excerpt(layout.type));
  const std::string_view data = file.substr(layout.begin);
  const std::size_t size = is_double || is_integer ? sizeof(double) : sizeof(float);
  if (data.size() != layout.count * size)
    refuse(path, fmt::format("has {} bytes of values, {} values take {}", data.size(), layout.count,
                             layout.count * size));
  return {layout.shape, is_double    ? numbers<double>(data, layout.count)
                        : is_integer ? numbers<std::int64_t>(data, layout.count)
                                     : numbers<float>(data, layout.count)};
}

NpyArray read(const std::string& path, bool is_vector) {
  std::uint64_t bytes = 0;
  const UniqueFd fd = open_regular(path, bytes);
  const std::size_t most = is_vector ? kMostInVector : kMost;
  if (bytes > most * sizeof(double) + kLongestHeader)
    refuse(path, fmt::format("has {} bytes, more than {} numbers take", bytes, most));
  NpyArray out = numbers_of(read_at(fd.get(), 0, bytes, path), path, false);
  if (is_vector && out.shape.size() != 1)
    refuse(path, fmt::format("has the shape ({}), not one dimension", fmt::join(out.shape, ", ")));
  return out;
}

}  // namespace

NpyArray npy_array_of(std::string_view file, const std::string& path) {
  return numbers_of(file, path, true);
}

NpyArray read_npy_array(const std::string& path) { return read(path, false); }

std::vector<double> read_npy_vector(const std::string& path) { return read(path, true).values; }

}  // namespace melflow
