#include "stages/output/rows/exact_sum.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace melflow {
namespace {

__extension__ using Wide = unsigned __int128;

// Converts a number of 64-bit words, the lowest first, in units of 2^lowest.
double to_double(std::span<const std::uint64_t> words, int lowest) {
  std::size_t top = words.size();
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return 0;
  const std::uint64_t high = words[top - 1], low = top > 1 ? words[top - 2] : 0;
  // All 64 bits below the leading one, wherever it is.
  const int shift = std::countl_zero(high);
  const std::uint64_t bits = shift == 0 ? high : high << shift | low >> (64 - shift);
  return std::ldexp(static_cast<double>(bits), static_cast<int>(top - 1) * 64 - shift + lowest);
}

}  // namespace

void ExactSum::add(double value, std::int64_t times) {
  if (value == 0) return;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  constexpr int kMantissa = 52, kBias = 1023;
  const auto size =
      static_cast<std::int64_t>((bits & ((1ULL << kMantissa) - 1)) | 1ULL << kMantissa);
  const int at = static_cast<int>(bits >> kMantissa & 0x7FF) - kBias - kMantissa - kLowest;
  const auto digit = static_cast<std::size_t>(at >> 6);
  if (digit >= digits_.size() - 1) throw std::logic_error("a number out of an exact sum's range");
  const auto whole = static_cast<Wide>(static_cast<Digit>((value < 0 ? -size : size) * times))
                     << (at & 63);
  digits_[digit] += static_cast<std::uint64_t>(whole);
  digits_[digit + 1] += static_cast<std::int64_t>(whole >> 64);
}

void ExactSum::add(const ExactSum& other) {
  for (std::size_t i = 0; i < digits_.size(); ++i) digits_[i] += other.digits_[i];
}

ExactSum::Words ExactSum::magnitude(bool& is_negative) const {
  Words words{};
  Digit carry = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Digit digit = (i < digits_.size() ? digits_[i] : 0) + carry;
    words[i] = static_cast<std::uint64_t>(digit);
    carry = digit >> 64;
  }
  is_negative = carry < 0;
  if (!is_negative) return words;
  bool borrows = true;  // two's complement
  for (std::uint64_t& word : words) {
    word = ~word + (borrows ? 1 : 0);
    borrows = borrows && word == 0;
  }
  return words;
}

std::string ExactSum::text() const {
  bool is_negative = false;
  const Words words = magnitude(is_negative);
  std::size_t top = words.size(), low = 0;
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return "0e0";
  while (words[low] == 0) ++low;
  std::string out = fmt::format("{}{:x}", is_negative ? "-" : "", words[top - 1]);
  for (std::size_t i = top - 1; i > low; --i) out += fmt::format("{:016x}", words[i - 1]);
  return out + fmt::format("e{}", low);
}

std::optional<ExactSum> ExactSum::of(std::string_view text) {
  constexpr std::size_t kHex = 16;  // digits of a word
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const std::size_t e = text.rfind('e');
  if (e == text.npos || e == 0 || e + 1 == text.size()) return std::nullopt;
  std::size_t low = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + e + 1, end, low).ptr != end) return std::nullopt;
  std::string_view digits = text.substr(0, e);
  ExactSum out;
  for (std::size_t at = low; !digits.empty(); ++at) {
    const std::string_view word = digits.substr(digits.size() - std::min(kHex, digits.size()));
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value, kHex);
    if (error != std::errc() || stop != word.data() + word.size() || at > kDigits)
      return std::nullopt;
    // A word beyond the top digit goes into that digit's upper half.
    auto part = static_cast<Digit>(value);
    if (at == kDigits) part = part * (static_cast<Digit>(1) << 32) * (static_cast<Digit>(1) << 32);
    out.digits_[std::min<std::size_t>(at, kDigits - 1)] += is_negative ? -part : part;
    digits.remove_suffix(word.size());
  }
  return out;
}

double ExactSum::value() const {
  bool is_negative = false;
  const Words words = magnitude(is_negative);
  const double size = to_double(words, kLowest);
  return is_negative ? -size : size;
}

// (count * squares - sum^2) / count, exact except for the division.
double ExactSum::squared_deviations(const ExactSum& sum, const ExactSum& squares,
                                    std::int64_t count) {
  if (count <= 0) return 0;
  bool is_negative = false;
  const Words s = sum.magnitude(is_negative), q = squares.magnitude(is_negative);
  constexpr std::size_t kWords = Words().size(), kBelow = -kLowest / 64;
  std::array<std::uint64_t, 2 * kWords> difference{};  // in units of 2^(2 * kLowest)
  Wide carry = 0;
  for (std::size_t i = 0; i < kWords; ++i) {
    carry += static_cast<Wide>(q[i]) * static_cast<std::uint64_t>(count);
    difference[kBelow + i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  difference[kBelow + kWords] = static_cast<std::uint64_t>(carry);
  std::array<std::uint64_t, 2 * kWords> square{};
  for (std::size_t i = 0; i < kWords; ++i) {
    carry = 0;
    for (std::size_t k = 0; k < kWords; ++k) {
      carry += static_cast<Wide>(s[i]) * s[k] + square[i + k];
      square[i + k] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    square[i + kWords] = static_cast<std::uint64_t>(carry);
  }
  bool borrows = false;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    const Wide have = difference[i], less = static_cast<Wide>(square[i]) + (borrows ? 1 : 0);
    borrows = have < less;
    difference[i] = static_cast<std::uint64_t>(have - less);
  }
  // Sums of rounded squares may be less than the sum of numbers requires.
  if (borrows || is_negative) return 0;
  return to_double(difference, 2 * kLowest) / static_cast<double>(count);
}

}  // namespace melflow
