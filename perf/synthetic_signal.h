// The sound of a synthetic recording: noise, three tones and a short burst every few seconds.
//
// In:  noise tables shared by all recordings, a key (one number for each recording and channel) and
//      the sample rate.
// Out: samples in about ±1, in blocks from start to end.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace melflow {

/// SplitMix64 (Steele, Lea and Flood 2014). Any 64-bit state is good, so (seed, file, slot) can be
/// hashed into one.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  /// Returns a uniform value in [low, high).
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40U) * 0x1p-24F;
  }
  std::size_t below(std::size_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

/// Combines two numbers into one key.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

using NoiseTables = std::vector<std::vector<float>>;

/// Makes four tables of a million samples, from white to low-pass noise.
NoiseTables make_noise(std::uint64_t seed);

/// A sine of fixed frequency, computed kLanes samples at a time by rotation, so that the compiler
/// can use vectors.
class Oscillator {
 public:
  static constexpr std::size_t kLanes = 8;

  Oscillator(double cycles_per_sample, double phase, float gain);
  /// Adds the tone to `out`; `n` is a multiple of kLanes.
  void add(float* out, std::size_t n);

 private:
  std::array<float, kLanes> re_{}, im_{};
  float step_re_ = 1, step_im_ = 0;
  float gain_;
};

/// One channel of one recording, computed from start to end in blocks.
class Signal {
 public:
  static constexpr std::size_t kLanes = Oscillator::kLanes;

  /// `noise` must outlive the signal; `rate` in [Hz].
  Signal(const NoiseTables& noise, std::uint64_t key, int rate);
  /// Fills `out` with the next `n` samples; `n` is a multiple of kLanes.
  void fill(float* out, std::size_t n);

 private:
  void add_event(std::size_t slot, float* out, std::size_t n) const;

  const NoiseTables& noise_;
  std::uint64_t key_;
  std::size_t slot_frames_;
  int rate_;
  std::size_t table_ = 0, offset_ = 0, position_ = 0;
  float noise_gain_ = 0;
  std::vector<Oscillator> tones_;
};

}  // namespace melflow
