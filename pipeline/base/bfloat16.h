// float32 to bfloat16, which is the upper half of a float: round to nearest even, overflow to
// infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace melflow {

// A NaN of any kind becomes 0x7FFF.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FFFU : rounded);
}

// Converts back, exactly.
inline float from_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
}

}  // namespace melflow
