#include "mel/number_type.h"

#include <algorithm>
#include <cstring>

#include "mel/bfloat16.h"
#include "mel/float16.h"

namespace melflow {

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

}  // namespace melflow
