// The number types in which values computed as floats are kept in memory or in a file.
//
// float16 is IEEE 754 binary16: values from 6.1e-5 to 65504 have a relative error of at most 2^-11
// (0.05 %); larger values become infinite. bfloat16 is the upper half of a float: the same range,
// with a relative error of at most 2^-8 (0.4 %). int16 is an audio sample: the value times 32768,
// clipped to the range from -1 to 32767 / 32768. All round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace melflow {

enum class NumberType : std::uint8_t { float32, float16, bfloat16, int16 };

constexpr std::size_t size_of(NumberType type) { return type == NumberType::float32 ? 4 : 2; }

// The name of a type, such as "float32".
const char* to_text(NumberType type);
// The type with that name; nullopt if there is none.
std::optional<NumberType> number_type(std::string_view name);

// Converts values into `out`, which must be aligned for the type and have room for all of them; for
// int16, all values must be finite.
void from_float(std::span<const float> values, NumberType type, void* out);
// Converts values back to floats, exactly. `values` must be aligned for the type.
void to_float(const void* values, std::size_t count, NumberType type, float* out);

// The largest value that stays finite in a type.
float greatest_of(NumberType type);
// The index of the first value that is not a number or whose magnitude exceeds `limit` (not
// negative); -1 if there is none.
std::int64_t first_beyond(std::span<const float> values, float limit);
// The index of the first of the values, which have type `from`, that is infinite or not a number in
// type `to`; -1 if there is none. `from` is float32 or the same as `to`. int16 holds every finite
// value, clipped.
std::int64_t first_not_finite(const void* values, std::size_t count, NumberType from,
                              NumberType to);

}  // namespace melflow
