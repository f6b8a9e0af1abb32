// The number types of rows, in memory or in a file: those in which values computed as floats are
// kept, and integers that a function gives, which nothing converts.
//
// float16 is IEEE 754 binary16: values from 6.1e-5 to 65504 have a relative error of at most 2^-11
// (0.05 %); larger values become infinite. bfloat16 is the upper half of a float: the same range,
// with a relative error of at most 2^-8 (0.4 %). Of floats, int16 is an audio sample: the value
// times 32768, clipped to the range from -1 to 32767 / 32768. All round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace melflow {

enum class NumberType : std::uint8_t {
  float32,
  float16,
  bfloat16,
  int16,
  int8,
  uint8,
  uint16,
  int32,
  int64
};
inline constexpr NumberType kNumberTypes[] = {
    NumberType::float32, NumberType::float16, NumberType::bfloat16,
    NumberType::int16,   NumberType::int8,    NumberType::uint8,
    NumberType::uint16,  NumberType::int32,   NumberType::int64};

constexpr std::size_t size_of(NumberType type) {
  switch (type) {
    case NumberType::int8:
    case NumberType::uint8:
      return 1;
    case NumberType::float16:
    case NumberType::bfloat16:
    case NumberType::int16:
    case NumberType::uint16:
      return 2;
    case NumberType::float32:
    case NumberType::int32:
      return 4;
    case NumberType::int64:
      return 8;
  }
  return 0;
}
constexpr bool is_integer(NumberType type) { return type >= NumberType::int16; }

// The name of a type, such as "float32".
const char* to_text(NumberType type);
// The type with that name; nullopt if there is none.
std::optional<NumberType> number_type(std::string_view name);

// Converts values into `out`, which must be aligned for the type and have room for all of them; for
// int16, all values must be finite. Throws std::logic_error for other integers.
void from_float(std::span<const float> values, NumberType type, void* out);
// Converts values back to floats, exactly. `values` must be aligned for the type. Throws
// std::logic_error for integers other than int16.
void to_float(const void* values, std::size_t count, NumberType type, float* out);
// Converts integers, of int16 the numbers themselves and not their share of full scale; the nearest
// number where it has too few bits. `Number`: float or double.
template <class Number>
void integers_to(const void* values, std::size_t count, NumberType type, Number* out);

// The largest value that from_float() can store in a type.
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
