// A sum of floating-point numbers that never rounds, so that it is the same for any order and
// grouping of the numbers.
//
// It is a fixed-point number from 2^-384 on, in digits of 64 bits. Each digit is kept in 128 bits,
// so that carries wait until the sum is read; 2^62 numbers fit. After Neal (2015), "Fast exact
// summation using small and large superaccumulators".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace melflow {

class ExactSum {
 public:
  /// Adds value * times. |value| is 0, or at least 2^-331 and below 2^280, which includes the
  /// squares of all floats and sums of 512 of these; `times` is below 512. Throws std::logic_error
  /// for other values, infinity and NaN.
  void add(double value, std::int64_t times = 1);
  void add(const ExactSum& other);
  /// The sum, exactly, as hexadecimal text with an exponent: "-1fe5" is -0x1f * 2^(64 * 5 - 384).
  [[nodiscard]] std::string text() const;
  /// The sum from which text() made this text; nothing for other texts.
  static std::optional<ExactSum> of(std::string_view text);
  /// The sum as a double, exact except for the last bit.
  [[nodiscard]] double value() const;

  /// The sum of (x - mean)^2 over `count` numbers x, from their sum and the sum of their squares;
  /// exactly 0 where all are equal.
  static double squared_deviations(const ExactSum& sum, const ExactSum& squares,
                                   std::int64_t count);

 private:
  static constexpr int kDigits = 11;
  static constexpr int kLowest = -384;  // exponent of the lowest bit
  __extension__ using Digit = __int128;
  // Two more digits than are kept hold all carries.
  using Words = std::array<std::uint64_t, kDigits + 2>;

  // Sign and magnitude, with all carries done.
  [[nodiscard]] Words magnitude(bool& is_negative) const;

  std::array<Digit, kDigits> digits_{};
};

}  // namespace melflow
