// A seeded pseudo-random permutation that takes no memory and computes any position directly.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace melflow {

/// A permutation of 0 to n - 1: a Feistel network of four rounds over the next power of four,
/// applied again until the result is below n.
class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t seed) : n_(n) {
    const auto bits = static_cast<unsigned>(std::bit_width(n - (n > 0 ? 1 : 0)));
    half_ = (bits + 1) / 2;
    for (std::uint64_t i = 0; i < kRounds; ++i) keys_[i] = mixed(mixed(seed) + i);
  }
  /// Returns a different seed for each epoch, derived from `seed`.
  static std::uint64_t of_epoch(std::uint64_t seed, std::uint64_t epoch) {
    return mixed(mixed(seed) ^ epoch);
  }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t place) const {
    if (n_ <= 1) return place;
    do {
      place = round_trip(place);
    } while (place >= n_);
    return place;
  }

 private:
  static constexpr std::size_t kRounds = 4;
  // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  [[nodiscard]] std::uint64_t round_trip(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = x >> half_, right = x & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mixed(right ^ key) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  std::uint64_t n_;
  unsigned half_ = 0;  // bits
  std::uint64_t keys_[kRounds] = {};
};

}  // namespace melflow
