// What values that were computed as floats are kept in, in memory or in a file.
//
// float16 is IEEE 754 binary16: of a value from 6.1e-5 to 65504 it keeps all but 2^-11 (0.05 %);
// larger ones become infinite. bfloat16 is the upper half of a float: its range, all but 2^-8
// (0.4 %). Both round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace melflow {

enum class NumberType : std::uint8_t { float32, float16, bfloat16 };

constexpr std::size_t size_of(NumberType type) { return type == NumberType::float32 ? 4 : 2; }

// "float32", "float16", "bfloat16".
const char* to_text(NumberType type);

// Into `out`, which is aligned for the type and has room for all of them.
void from_float(std::span<const float> values, NumberType type, void* out);
// Back, exactly. `values` aligned for the type.
void to_float(const void* values, std::size_t count, NumberType type, float* out);

// The greatest value that stays finite in that type.
float greatest_of(NumberType type);
// The first of the values, which are of type `from`, that is infinite or not a number once it is of
// type `to`; -1 where none is. `from` is float32 or the same as `to`.
std::int64_t first_not_finite(const void* values, std::size_t count, NumberType from,
                              NumberType to);

}  // namespace melflow
