// Returns the value of a bfloat16, whose 16 bits are the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace melflow::test {

inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace melflow::test
