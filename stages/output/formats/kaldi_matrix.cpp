#include "stages/output/formats/kaldi_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

constexpr std::size_t kHeader = 16, kColumnHeader = 8;  // [bytes]
constexpr float kMost16 = 65535, kMost8 = 255;

int format_of(std::int64_t rows, int compression) {
  constexpr std::int64_t kFewRows = 8;
  return compression != 1 ? compression : rows > kFewRows ? 2 : 3;
}
std::string_view token_of(int format) {
  return format == 2 ? "CM " : format == 3 ? "CM2 " : "CM3 ";
}

struct Range {
  float least = 0, width = 1;
  [[nodiscard]] float part(float value) const {
    return std::clamp((value - least) / width, 0.0F, 1.0F);
  }
  // The number from 0 to `most` that stands for a value; and the value for which a number stands.
  [[nodiscard]] int number(float value, float most) const {
    return static_cast<int>(part(value) * most + 0.499);
  }
  [[nodiscard]] float value(int number, float most) const {
    return least + width * (1 / most) * static_cast<float>(number);
  }
};

Range range_of(const std::vector<float>& values) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return {*least, *greatest > *least ? *greatest - *least : 1 + std::fabs(*least)};
}

// The four values of a column, as numbers of the range; each above the one before.
struct Corners {
  std::uint16_t at[4];
};
static_assert(sizeof(Corners) == kColumnHeader);

Corners corners_of(std::vector<float>& column, const Range& range) {
  std::sort(column.begin(), column.end());
  const std::size_t n = column.size(), quarter = n / 4;
  // With fewer than five values each one is a corner, and the missing corners follow from the last.
  const std::size_t places[] = {0, n < 5 ? 1 : quarter, n < 5 ? 2 : 3 * quarter, n < 5 ? 3 : n - 1};
  Corners out{};
  int before = -1;
  for (int i = 0; i < 4; ++i) {
    const int own = places[i] < n ? range.number(column[places[i]], kMost16) : 0;
    before = std::max(std::min(own, 65532 + i), before + 1);
    out.at[i] = static_cast<std::uint16_t>(before);
  }
  return out;
}

constexpr int kStops[] = {0, 64, 192, 255};  // the bytes of the corners

std::uint8_t byte_of(float value, const float (&corner)[4]) {
  const int part = value < corner[1] ? 0 : value < corner[2] ? 1 : 2;
  const int steps = kStops[part + 1] - kStops[part];
  const float f = (value - corner[part]) / (corner[part + 1] - corner[part]);
  return static_cast<std::uint8_t>(
      kStops[part] + std::clamp(static_cast<int>(f * static_cast<double>(steps) + 0.5), 0, steps));
}

float value_of(std::uint8_t byte, const float (&corner)[4]) {
  const int part = byte <= kStops[1] ? 0 : byte <= kStops[2] ? 1 : 2;
  return static_cast<float>(corner[part] + (corner[part + 1] - corner[part]) *
                                               static_cast<double>(byte - kStops[part]) /
                                               (kStops[part + 1] - kStops[part]));
}

void to_values(const Corners& corners, const Range& range, float (&out)[4]) {
  for (int i = 0; i < 4; ++i) out[i] = range.value(corners.at[i], kMost16);
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& from) {
  T out;
  std::memcpy(&out, from.data(), sizeof out);
  from.remove_prefix(sizeof out);
  return out;
}

}  // namespace

std::size_t compressed_bytes(std::int64_t rows, std::int64_t columns, int compression) {
  const int format = format_of(rows, compression);
  const auto values = static_cast<std::size_t>(rows * columns);
  return token_of(format).size() + kHeader +
         (format == 2   ? static_cast<std::size_t>(columns) * kColumnHeader + values
          : format == 3 ? 2 * values
                        : values);
}

std::string compressed_matrix(const std::vector<float>& values, std::int64_t rows,
                              std::int64_t columns, int compression) {
  const int format = format_of(rows, compression);
  const Range range = range_of(values);
  std::string out(token_of(format));
  out.reserve(compressed_bytes(rows, columns, compression));
  append(out, range.least);
  append(out, range.width);
  append(out, static_cast<std::int32_t>(rows));
  append(out, static_cast<std::int32_t>(columns));
  if (format != 2) {
    for (const float value : values)
      if (format == 3)
        append(out, static_cast<std::uint16_t>(range.number(value, kMost16)));
      else
        append(out, static_cast<std::uint8_t>(range.number(value, kMost8)));
    return out;
  }
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
  std::string bytes;
  std::vector<float> column(height);
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t r = 0; r < height; ++r) column[r] = values[r * width + c];
    const Corners corners = corners_of(column, range);
    append(out, corners);
    float corner[4];
    to_values(corners, range, corner);
    for (std::size_t r = 0; r < height; ++r)
      bytes += static_cast<char>(byte_of(values[r * width + c], corner));
  }
  return out + bytes;
}

std::vector<float> expanded_matrix(std::string_view bytes, std::int64_t rows, std::int64_t columns,
                                   int compression) {
  const int format = format_of(rows, compression);
  const bool is_one = bytes.size() == compressed_bytes(rows, columns, compression) &&
                      bytes.starts_with(token_of(format));
  if (is_one) bytes.remove_prefix(token_of(format).size());
  Range range;
  if (is_one) {
    range.least = take<float>(bytes);
    range.width = take<float>(bytes);
  }
  if (!is_one || take<std::int32_t>(bytes) != rows || take<std::int32_t>(bytes) != columns)
    throw RunError("a compressed matrix is damaged, or of another size");
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
  std::vector<float> out(height * width);
  if (format != 2) {
    for (float& value : out)
      value = format == 3 ? range.value(take<std::uint16_t>(bytes), kMost16)
                          : range.value(take<std::uint8_t>(bytes), kMost8);
    return out;
  }
  std::string_view values = bytes.substr(width * kColumnHeader);
  for (std::size_t c = 0; c < width; ++c) {
    float corner[4];
    to_values(take<Corners>(bytes), range, corner);
    for (std::size_t r = 0; r < height; ++r)
      out[r * width + c] = value_of(static_cast<std::uint8_t>(values[c * height + r]), corner);
  }
  return out;
}

}  // namespace melflow
