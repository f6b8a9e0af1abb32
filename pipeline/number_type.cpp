#include "pipeline/number_type.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "pipeline/bfloat16.h"
#include "pipeline/float16.h"

namespace melflow {
namespace {

// Of bits without their sign, the first from `limit` on; vectors look at a piece at once.
template <class Bits>
std::int64_t first_from(const Bits* values, std::size_t count, Bits limit) {
  constexpr std::size_t kPiece = 1024;
  constexpr Bits kSize = std::numeric_limits<Bits>::max();  // all but the sign
  for (std::size_t at = 0; at < count; at += kPiece) {
    const std::size_t end = std::min(count, at + kPiece);
    Bits largest = 0;
    for (std::size_t i = at; i < end; ++i)
      largest = std::max(largest, static_cast<Bits>(values[i] & kSize));
    if (largest < limit) continue;
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
  }
  return "?";
}

void from_float(std::span<const float> values, NumberType type, void* out) {
  if (values.empty()) return;
  auto* halves = static_cast<std::uint16_t*>(out);
  if (type == NumberType::float32)
    std::memcpy(out, values.data(), values.size_bytes());
  else if (type == NumberType::float16)
    to_float16(values, halves);
  else
    std::transform(values.begin(), values.end(), halves, to_bfloat16);
}

void to_float(const void* values, std::size_t count, NumberType type, float* out) {
  if (count == 0) return;
  const auto* halves = static_cast<const std::uint16_t*>(values);
  if (type == NumberType::float32)
    std::memcpy(out, values, count * sizeof(float));
  else
    std::transform(halves, halves + count, out,
                   type == NumberType::float16 ? from_float16 : from_bfloat16);
}

float greatest_of(NumberType type) {
  switch (type) {
    case NumberType::float16:
      return 65504.0F;
    case NumberType::bfloat16:
      return 0x1.FEp127F;
    case NumberType::float32:
      break;
  }
  return std::numeric_limits<float>::max();
}

std::int64_t first_not_finite(const void* values, std::size_t count, NumberType from,
                              NumberType to) {
  if (from == NumberType::float32) {
    // From half a step above the greatest number on.
    const std::int32_t limit = to == NumberType::float32   ? 0x7F800000
                               : to == NumberType::float16 ? 0x477FF000
                                                           : 0x7F7F8000;
    return first_from(static_cast<const std::int32_t*>(values), count, limit);
  }
  const std::int16_t limit = from == NumberType::float16 ? 0x7C00 : 0x7F80;
  return first_from(static_cast<const std::int16_t*>(values), count, limit);
}

}  // namespace melflow
