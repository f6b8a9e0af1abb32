#include "pipeline/base/number_type.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/base/float16.h"

namespace melflow::number_type_test {
namespace {

// Returns the value of a bfloat16: a sign, eight bits of exponent with bias 127, seven of fraction.
double value_of(std::uint16_t bits) {
  const int exponent = (bits >> 7) & 255, fraction = bits & 127;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -133) : std::ldexp(128 + fraction, exponent - 134);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

constexpr std::uint16_t kInfinite = 0x7F80;

}  // namespace

TEST_CASE("bfloat16: every one survives the way to float32 and back") {
  int wrong = 0;
  for (unsigned b = 0; b < 65536; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    if ((b & 0x7FFFU) > kInfinite) continue;  // NaN
    const float value = from_bfloat16(bits);
    if ((b & 0x7FFFU) != kInfinite && static_cast<double>(value) != value_of(bits)) ++wrong;
    if (to_bfloat16(value) != bits) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: the nearer neighbour is taken, of equally near ones the even one") {
  int wrong = 0;
  for (std::uint16_t b = 0; b < kInfinite - 1; ++b) {
    const auto next = static_cast<std::uint16_t>(b + 1);
    const auto middle = static_cast<float>((value_of(b) + value_of(next)) / 2);
    const std::pair<float, std::uint16_t> rows[] = {{middle, b % 2 == 0 ? b : next},
                                                    {std::nextafterf(middle, 0), b},
                                                    {std::nextafterf(middle, INFINITY), next}};
    for (const auto& [value, expected] : rows) {
      if (to_bfloat16(value) != expected) ++wrong;
      if (to_bfloat16(-value) != (expected | 0x8000)) ++wrong;
      // Starts at the smallest normal number.
      const double error = std::abs(value_of(to_bfloat16(value)) - static_cast<double>(value));
      if (value >= 0x1p-126F && error > 0x1p-8 * static_cast<double>(value)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: the ends of the range") {
  CHECK(to_bfloat16(0x1.fefffep127F) == 0x7F7F);  // rounds to the largest one
  CHECK(to_bfloat16(0x1.ffp127F) == kInfinite);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()) == kInfinite);
  CHECK(to_bfloat16(-std::numeric_limits<float>::infinity()) == 0xFF80);
  CHECK(to_bfloat16(-0.0F) == 0x8000);
  for (const float nan : {std::nanf(""), -std::nanf(""), std::nanf("1")}) {
    CHECK(to_bfloat16(nan) == 0x7FFF);
    CHECK(std::isnan(from_bfloat16(to_bfloat16(nan))));
  }
}

TEST_CASE("number type: values of every type come back, one by one and many together") {
  std::vector<float> values;
  for (int i = 0; i < 1003; ++i)
    values.push_back(std::ldexp(static_cast<float>(i % 211) - 100.3F, i % 40 - 20));
  for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
    CAPTURE(to_text(type));
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{17}, values.size()}) {
      std::vector<std::uint32_t> stored(values.size(), 0xABABABABU);
      from_float({values.data(), n}, type, stored.data());
      const auto* bytes = reinterpret_cast<const unsigned char*>(stored.data());
      CHECK((n == values.size() || bytes[n * size_of(type)] == 0xAB));  // the next byte is intact
      std::vector<float> back(values.size());
      to_float(stored.data(), n, type, back.data());
      int wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        float expected = values[i];
        if (type == NumberType::float16) expected = from_float16(to_float16(expected));
        if (type == NumberType::bfloat16) expected = from_bfloat16(to_bfloat16(expected));
        if (back[i] != expected) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("number type: integers become numbers, and no floats become integers but samples") {
  const auto ends = [](NumberType type, auto first) {
    using Integer = decltype(first);
    const Integer stored[] = {std::numeric_limits<Integer>::min(), 0, 1,
                              std::numeric_limits<Integer>::max()};
    CAPTURE(to_text(type));
    CHECK(size_of(type) == sizeof(Integer));
    CHECK(is_integer(type));
    CHECK(number_type(to_text(type)) == type);
    double doubles[4];
    float floats[4];
    integers_to(stored, 4, type, doubles);
    integers_to(stored, 4, type, floats);
    for (int i = 0; i < 4; ++i) {
      CHECK(doubles[i] == static_cast<double>(stored[i]));
      CHECK(floats[i] == static_cast<float>(stored[i]));
    }
    if (type == NumberType::int16) return;  // of samples
    float value = 1;
    Integer out = 7;
    CHECK_THROWS_AS(from_float({&value, 1}, type, &out), std::logic_error);
    CHECK_THROWS_AS(to_float(stored, 4, type, floats), std::logic_error);
    CHECK_THROWS_AS((void)greatest_of(type), std::logic_error);
  };
  ends(NumberType::int8, std::int8_t{});
  ends(NumberType::uint8, std::uint8_t{});
  ends(NumberType::int16, std::int16_t{});
  ends(NumberType::uint16, std::uint16_t{});
  ends(NumberType::int32, std::int32_t{});
  ends(NumberType::int64, std::int64_t{});
  float value = 0;
  CHECK_FALSE(is_integer(NumberType::bfloat16));
  CHECK_THROWS_AS(integers_to(&value, 1, NumberType::float32, &value), std::logic_error);
}

TEST_CASE("number type: the first value that is not finite, in its own type and once rounded") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  struct Row {
    float value;
    NumberType type;
    bool is_finite;
  };
  using enum NumberType;
  const Row rows[] = {{std::numeric_limits<float>::max(), float32, true},
                      {inf, float32, false},
                      {-inf, float32, false},
                      {std::numeric_limits<float>::quiet_NaN(), float32, false},
                      {-std::numeric_limits<float>::quiet_NaN(), float32, false},
                      {-0.0F, float32, true},
                      {65519.99F, float16, true},
                      {-65520.0F, float16, false},
                      {1e-30F, float16, true},
                      {greatest_of(float16), float16, true},
                      {0x1.FEFFFEp127F, bfloat16, true},
                      {0x1.FFp127F, bfloat16, false},
                      {greatest_of(bfloat16), bfloat16, true},
                      {inf, bfloat16, false},
                      {1e30F, int16, true}};
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CAPTURE(std::string(to_text(row.type)));
    for (const std::size_t at : {0U, 5U, 1023U, 1024U, 2999U}) {
      std::vector<float> values(3000, -1.5F);
      values[at] = row.value;
      const std::int64_t expected = row.is_finite ? -1 : static_cast<std::int64_t>(at);
      CHECK(first_not_finite(values.data(), values.size(), float32, row.type) == expected);
      std::vector<float> stored(values.size());  // large enough for any type
      from_float(values, row.type, stored.data());
      CHECK(first_not_finite(stored.data(), values.size(), row.type, row.type) == expected);
    }
  }
  CHECK(first_not_finite(nullptr, 0, float32, float32) == -1);
}

TEST_CASE("number type: many float16 together, at the ends of what they hold") {
  // IEEE 754: the largest number of binary16 is 65504, and its smallest step 2^-24.
  const std::pair<float, std::uint16_t> cases[] = {
      {0.0F, 0x0000},        {-0.0F, 0x8000},
      {1.0F, 0x3c00},        {65504.0F, 0x7bff},
      {65519.99F, 0x7bff},   {65520.0F, 0x7c00},
      {-1e9F, 0xfc00},       {std::numeric_limits<float>::infinity(), 0x7c00},
      {0x1p-24F, 0x0001},    {0x1p-25F, 0x0000},
      {0x1.8p-25F, 0x0001},  {0x1p-14F, 0x0400},
      {0x1.ff8p-15F, 0x03ff}};
  std::vector<float> values;
  for (int round = 0; round < 5; ++round)  // in every lane of a vector
    for (const auto& [value, bits] : cases) values.push_back(value);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  std::vector<std::uint16_t> stored(values.size());
  from_float(values, NumberType::float16, stored.data());
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    CAPTURE(values[i]);
    CHECK(stored[i] == cases[i % std::size(cases)].second);
  }
  CHECK((stored.back() & 0x7fff) > 0x7c00);
  std::vector<float> back(values.size());
  to_float(stored.data(), stored.size(), NumberType::float16, back.data());
  CHECK(back[5] == std::numeric_limits<float>::infinity());
  CHECK(back[8] == 0x1p-24F);
  CHECK(std::isnan(back.back()));
}

TEST_CASE("number type: int16 is the value times 32768, to nearest, clipped") {
  const std::pair<float, std::int16_t> cases[] = {
      {0.0F, 0},         {-0.0F, 0},       {1.0F, 32767},        {-1.0F, -32768}, {-1.5F, -32768},
      {1e30F, 32767},    {-1e30F, -32768}, {0x1p-15F, 1},        {0x1p-16F, 0},   {0x1.8p-15F, 2},
      {-0x1.8p-15F, -2}, {0x1.4p-14F, 2},  {0x1.000002p-16F, 1}, {0.25F, 8192},   {0.99997F, 32767},
      {0.99996F, 32767}, {0.99993F, 32766}};
  std::vector<float> values;
  for (int round = 0; round < 5; ++round)  // in every lane of a vector
    for (const auto& [value, bits] : cases) values.push_back(value);
  std::vector<std::int16_t> stored(values.size());
  from_float(values, NumberType::int16, stored.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(values[i]);
    CHECK(stored[i] == cases[i % std::size(cases)].second);
  }
  CHECK(first_beyond(values, 1e30F) == -1);
  CHECK(first_beyond(values, 1) == 4);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(first_beyond(values, 1e30F) == 3);
  // All values are restored.
  std::vector<std::int16_t> every(65536), again(65536);
  for (int i = 0; i < 65536; ++i)
    every[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(i - 32768);
  std::vector<float> floats(every.size());
  to_float(every.data(), every.size(), NumberType::int16, floats.data());
  CHECK(floats.front() == -1.0F);
  CHECK(floats[32768 + 1] == 0x1p-15F);
  from_float(floats, NumberType::int16, again.data());
  CHECK(again == every);
  CHECK(first_not_finite(every.data(), every.size(), NumberType::int16, NumberType::int16) == -1);
}

}  // namespace melflow::number_type_test
