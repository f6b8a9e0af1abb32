// sha256.h - SHA-256 of a few bytes of test data (FIPS 180-4), as lower-case hex.

#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace melflow::reference {

// The first 32 fractional bits of the square or cube roots of the first primes.
inline std::array<std::uint32_t, 64> prime_root_bits(double (*root)(double)) {
  std::array<std::uint32_t, 64> bits{};
  std::size_t found = 0;
  for (int candidate = 2; found < bits.size(); ++candidate) {
    bool prime = true;
    for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
    if (!prime) continue;
    const double value = root(candidate);
    bits[found++] = static_cast<std::uint32_t>((value - std::floor(value)) * 4294967296.0);
  }
  return bits;
}

inline std::string sha256(std::vector<std::uint8_t> bytes) {
  const auto k = prime_root_bits([](double x) { return std::cbrt(x); });
  const auto start = prime_root_bits([](double x) { return std::sqrt(x); });
  std::array<std::uint32_t, 8> hash{};
  for (std::size_t i = 0; i < 8; ++i) hash[i] = start[i];

  const std::uint64_t length_bits = bytes.size() * 8;
  bytes.push_back(0x80);
  while (bytes.size() % 64 != 56) bytes.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::uint8_t>(length_bits >> shift));
  }
  for (std::size_t block = 0; block < bytes.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | bytes[block + i];
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15];
      const std::uint32_t b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                               ((e & f) ^ (~e & g)) + k[i] + w[i];
      const std::uint32_t t2 =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> round{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) hash[i] += round[i];
  }
  std::string text;
  for (const std::uint32_t word : hash) {
    std::array<char, 9> hex{};
    std::snprintf(hex.data(), hex.size(), "%08x", static_cast<unsigned>(word));
    text += hex.data();
  }
  return text;
}

}  // namespace melflow::reference
