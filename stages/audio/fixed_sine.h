// A sine in integer arithmetic, the same on every machine.
#pragma once

#include <cstdint>

namespace melflow {

/// Returns amplitude * sin(2 pi phase / 2^64), rounded, with an error below 1e-4 before rounding.
/// `amplitude`: 0 to 32767.
inline std::int16_t fixed_sine(std::uint64_t phase, std::int64_t amplitude) {
  constexpr int kBits = 30;  // after the binary point
  constexpr std::int64_t kOne = std::int64_t{1} << kBits;
  constexpr std::int64_t kQuarter = 1'686'629'713;  // pi / 2
  constexpr std::uint64_t kQuarterTurn = std::uint64_t{1} << 62;
  std::uint64_t rest = phase & (kQuarterTurn - 1);
  if ((phase & kQuarterTurn) != 0) rest = kQuarterTurn - rest;
  const std::int64_t z = (static_cast<std::int64_t>(rest >> (62 - kBits)) * kQuarter) >> kBits;
  const std::int64_t z2 = (z * z) >> kBits;
  // z - z^3/3! + z^5/5! - ... + z^13/13!, from the inside out.
  std::int64_t sum = kOne;
  for (const int k : {12 * 13, 10 * 11, 8 * 9, 6 * 7, 4 * 5, 2 * 3})
    sum = kOne - ((z2 * sum) >> kBits) / k;
  const std::int64_t sine = (z * sum) >> kBits;
  const std::int64_t size = (amplitude * sine + kOne / 2) >> kBits;
  return static_cast<std::int16_t>((phase >> 63) != 0 ? -size : size);
}

}  // namespace melflow
