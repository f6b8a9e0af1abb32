#include "pipeline/base/float16.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace melflow::float16_test {
namespace {

// Returns the value of a binary16, from its definition (IEEE 754, 3.4).
double value_of(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("float16: every binary16 survives the way to float32 and back") {
  int wrong = 0;
  for (unsigned h = 0; h < 65536; ++h) {
    if (((h >> 10) & 31U) == 31) continue;  // infinities and NaN are tested below
    const auto half = static_cast<std::uint16_t>(h);
    if (to_float16(static_cast<float>(value_of(half))) != half) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "float16: between two neighbours the nearer one is taken, and of equal ones the even one") {
  int wrong = 0;
  for (std::uint16_t h = 0; h < 0x7BFF; ++h) {
    const std::uint16_t next = h + 1, even = h % 2 == 0 ? h : next;
    const auto middle = static_cast<float>((value_of(h) + value_of(next)) / 2);
    const std::pair<float, std::uint16_t> rows[] = {
        {middle, even}, {std::nextafterf(middle, 0), h}, {std::nextafterf(middle, 1e9F), next}};
    for (const auto& [value, expected] : rows) {
      if (to_float16(value) != expected) ++wrong;
      if (to_float16(-value) != (expected | 0x8000)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("float16: the ends of the range") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  struct Row {
    float value;
    std::uint16_t half;
  };
  const Row rows[] = {
      {0.0F, 0x0000},       {-0.0F, 0x8000},    {65504.0F, 0x7BFF},
      {65519.996F, 0x7BFF}, {65520.0F, 0x7C00}, {-65520.0F, 0xFC00},
      {3e38F, 0x7C00},      {inf, 0x7C00},      {-inf, 0xFC00},
      {0x1p-24F, 0x0001},   {0x1p-25F, 0x0000}, {std::nextafterf(0x1p-25F, 1.0F), 0x0001},
      {1e-45F, 0x0000},     {-1e-45F, 0x8000},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(to_float16(row.value) == row.half);
  }
  const std::uint16_t nan = to_float16(std::nanf(""));
  CHECK((nan & 0x7C00) == 0x7C00);
  CHECK((nan & 0x03FF) != 0);
}

TEST_CASE("float16: a span is converted value by value, whatever its length and its neighbours") {
  std::uint32_t state = 1;
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 31U, 100'000U}) {
    CAPTURE(count);
    std::vector<float> values(count);
    for (float& v : values) {
      state = state * 1664525U + 1013904223U;
      // Draws all kinds of floats: denormal, infinite and NaN, too.
      v = std::bit_cast<float>(state ^ (state >> 15));
    }
    std::vector<std::uint16_t> out(count), expected;
    for (const float v : values) expected.push_back(to_float16(v));
    to_float16(values, out.data());
    CHECK(out == expected);
  }
}

}  // namespace melflow::float16_test
