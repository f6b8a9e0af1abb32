// Conversions to 16-bit numbers on the host, with the results of a device's own conversions.

#include "cuda/number_types.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/bfloat16.h"

namespace melflow::cuda {
namespace {

TEST_CASE("number types: every float16 and bfloat16 is itself again") {
  for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float a = float_of_float16(half), b = test::float_of_bfloat16(half);
    if (std::isnan(a))
      CHECK(std::isnan(float_of_float16(float16_bits(a))));
    else
      CHECK(float16_bits(a) == half);
    if (std::isnan(b))
      CHECK(std::isnan(test::float_of_bfloat16(bfloat16_bits(b))));
    else
      CHECK(bfloat16_bits(b) == half);
  }
  CHECK(float_of_float16(0x0001) == 0x1p-24F);
  CHECK(float_of_float16(0x7BFF) == 65504.0F);
  CHECK(std::isinf(float_of_float16(0xFC00)));
}

TEST_CASE("number types: bfloat16 is rounded to nearest, ties to even") {
  CHECK(bfloat16_bits(1.0F + 0x1p-8F) == 0x3F80);      // a tie, rounded to even: down to 1
  CHECK(bfloat16_bits(1.0F + 3 * 0x1p-8F) == 0x3F82);  // another tie, rounded up
  CHECK(bfloat16_bits(1.0F + 0x1.1p-8F) == 0x3F81);
  CHECK(bfloat16_bits(-1.0F - 0x1.1p-8F) == 0xBF81);
  CHECK(bfloat16_bits(std::numeric_limits<float>::max()) == 0x7F80);  // exceeds the largest value
}

TEST_CASE("number types: operands keep both parts of a point in their places") {
  const Complex z = {1.5F, -0.25F};
  const Complex half = Operand<NumberType::float16>::unpack(Operand<NumberType::float16>::pack(z));
  const Complex brain =
      Operand<NumberType::bfloat16>::unpack(Operand<NumberType::bfloat16>::pack(z));
  CHECK(half.re == z.re);
  CHECK(half.im == z.im);
  CHECK(brain.re == z.re);
  CHECK(brain.im == z.im);
}

}  // namespace
}  // namespace melflow::cuda
