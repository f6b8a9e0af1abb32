#include "pipeline/base/number_type.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "pipeline/base/float16.h"
#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

constexpr float kInt16Steps = 32768;  // to full scale

// Without a branch or a call, so that the compiler vectorises loops over it.
inline std::int16_t to_int16(float value) {
  constexpr float kWhole = 3 << 22;  // 1.5 * 2^23: floats from 2^23 to 2^24 are whole
  float steps = value * kInt16Steps;
  steps = steps < -kInt16Steps ? -kInt16Steps : steps;
  steps = steps > kInt16Steps - 1 ? kInt16Steps - 1 : steps;
  return static_cast<std::int16_t>(std::bit_cast<std::int32_t>(steps + kWhole) -
                                   std::bit_cast<std::int32_t>(kWhole));
}

MELFLOW_FOR_WIDE_VECTORS void to_int16(const float* values, std::size_t count, std::int16_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = to_int16(values[i]);
}
MELFLOW_FOR_WIDE_VECTORS void from_int16(const std::int16_t* values, std::size_t count,
                                         float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i]) / kInt16Steps;
}
MELFLOW_FOR_WIDE_VECTORS std::int32_t largest_of(const std::int32_t* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, values[i] & 0x7FFFFFFF);
  return largest;
}
std::int16_t largest_of(const std::int16_t* values, std::size_t count) {
  std::int16_t largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    largest = std::max(largest, static_cast<std::int16_t>(values[i] & 0x7FFF));
  return largest;
}

[[noreturn]] void refuse(NumberType type) {
  throw std::logic_error(std::string("no floats are stored as ") + to_text(type));
}

// Finds the first value whose bits without the sign are at least `limit`. Vectors scan each piece.
template <class Bits>
std::int64_t first_from(const Bits* values, std::size_t count, Bits limit) {
  constexpr std::size_t kPiece = 1024;
  constexpr Bits kSize = std::numeric_limits<Bits>::max();  // all but the sign
  for (std::size_t at = 0; at < count; at += kPiece) {
    const std::size_t end = std::min(count, at + kPiece);
    if (largest_of(values + at, end - at) < limit) continue;
    std::size_t i = at;
    while (static_cast<Bits>(values[i] & kSize) < limit) ++i;
    return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace

const char* to_text(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return "float32";
    case NumberType::float16:
      return "float16";
    case NumberType::bfloat16:
      return "bfloat16";
    case NumberType::int16:
      return "int16";
    case NumberType::int8:
      return "int8";
    case NumberType::uint8:
      return "uint8";
    case NumberType::uint16:
      return "uint16";
    case NumberType::int32:
      return "int32";
    case NumberType::int64:
      return "int64";
  }
  return "?";
}

std::optional<NumberType> number_type(std::string_view name) {
  for (const NumberType type : kNumberTypes)
    if (name == to_text(type)) return type;
  return std::nullopt;
}

void from_float(std::span<const float> values, NumberType type, void* out) {
  if (values.empty()) return;
  auto* halves = static_cast<std::uint16_t*>(out);
  if (type == NumberType::float32)
    std::memcpy(out, values.data(), values.size_bytes());
  else if (type == NumberType::float16)
    to_float16(values, halves);
  else if (type == NumberType::int16)
    to_int16(values.data(), values.size(), static_cast<std::int16_t*>(out));
  else if (is_integer(type))
    refuse(type);
  else
    std::transform(values.begin(), values.end(), halves, to_bfloat16);
}

void to_float(const void* values, std::size_t count, NumberType type, float* out) {
  if (count == 0) return;
  const auto* halves = static_cast<const std::uint16_t*>(values);
  if (type == NumberType::float32)
    std::memcpy(out, values, count * sizeof(float));
  else if (type == NumberType::int16)
    from_int16(static_cast<const std::int16_t*>(values), count, out);
  else if (is_integer(type))
    refuse(type);
  else
    std::transform(halves, halves + count, out,
                   type == NumberType::float16 ? from_float16 : from_bfloat16);
}

template <class Number>
void integers_to(const void* values, std::size_t count, NumberType type, Number* out) {
  const auto from = [&](auto first) {
    using Integer = decltype(first);
    std::transform(static_cast<const Integer*>(values), static_cast<const Integer*>(values) + count,
                   out, [](Integer value) { return static_cast<Number>(value); });
  };
  switch (type) {
    case NumberType::int8:
      return from(std::int8_t{});
    case NumberType::uint8:
      return from(std::uint8_t{});
    case NumberType::int16:
      return from(std::int16_t{});
    case NumberType::uint16:
      return from(std::uint16_t{});
    case NumberType::int32:
      return from(std::int32_t{});
    case NumberType::int64:
      return from(std::int64_t{});
    case NumberType::float32:
    case NumberType::float16:
    case NumberType::bfloat16:
      break;
  }
  throw std::logic_error(std::string("no integers: ") + to_text(type));
}
template void integers_to(const void*, std::size_t, NumberType, float*);
template void integers_to(const void*, std::size_t, NumberType, double*);

float greatest_of(NumberType type) {
  if (is_integer(type) && type != NumberType::int16) refuse(type);
  switch (type) {
    case NumberType::float16:
      return 65504.0F;
    case NumberType::bfloat16:
      return 0x1.FEp127F;
    case NumberType::int16:
      return (kInt16Steps - 1) / kInt16Steps;
    default:
      return std::numeric_limits<float>::max();
  }
}

std::int64_t first_beyond(std::span<const float> values, float limit) {
  return first_from(reinterpret_cast<const std::int32_t*>(values.data()), values.size(),
                    std::bit_cast<std::int32_t>(limit) + 1);
}

std::int64_t first_not_finite(const void* values, std::size_t count, NumberType from,
                              NumberType to) {
  if (from == NumberType::float32) {
    // The smallest bits that become infinite: half a step above the greatest number.
    const std::int32_t limit = to == NumberType::float16    ? 0x477FF000
                               : to == NumberType::bfloat16 ? 0x7F7F8000
                                                            : 0x7F800000;
    return first_from(static_cast<const std::int32_t*>(values), count, limit);
  }
  if (from == NumberType::int16) return -1;
  const std::int16_t limit = from == NumberType::float16 ? 0x7C00 : 0x7F80;
  return first_from(static_cast<const std::int16_t*>(values), count, limit);
}

}  // namespace melflow
