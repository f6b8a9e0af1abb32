// words.h - the fingerprint of samples: a word of 32 bits every 12.5 ms.
//
// In:  mono samples at 4000 Hz.
// Out: words; bit b of word r is the sign of a second difference of band energies,
//      (E(r + 16, b) - E(r + 16, b + 1)) - (E(r, b) - E(r, b + 1)) > 0,
//      where E(r, b) is the energy of band b of 33 between 300 and 1800 Hz, whose edges are evenly
//      spaced on a logarithmic axis, in 25 frames from number r on, weighted by a Hann window.
//
// Haitsma and Kalker 2002, "A highly robust audio fingerprinting system" (ISMIR), with two
// changes: their frames of 370 ms are here Hann windows of 64 ms whose energies are added, which
// takes a tenth of the work, and the difference in time spans 200 ms and not one hop, which makes
// bits that survive a codec more often. Level and channels have no influence; digital silence
// gives the word 0.
#pragma once

#include <cstdint>
#include <memory>

namespace melflow::fingerprint {

inline constexpr int kRate = 4000;               ///< [Hz]
inline constexpr int kHop = 50;                  ///< from word to word [samples]
inline constexpr int kFrame = 256;               ///< [samples]
inline constexpr int kSmoothed = 25, kLag = 16;  ///< [frames]
inline constexpr int kBits = 32;
/// What a word depends on [samples]: 564 ms.
inline constexpr int kSpan = kFrame + (kSmoothed - 1 + kLag) * kHop;

/// The words that the first `samples` of a recording complete.
constexpr std::int64_t words_ready(std::int64_t samples) {
  return samples < kSpan ? 0 : (samples - kSpan) / kHop + 1;
}
/// The words of a recording of so many samples; one shorter than kSpan is padded with zeros.
constexpr std::int64_t words_of(std::int64_t samples) {
  return samples > 0 && samples < kSpan ? 1 : words_ready(samples);
}

/// Safe from many threads.
class Kernel {
 public:
  Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();
  /// Computes `count` words, the first of them of samples[0] to samples[kSpan - 1]. Samples are 0
  /// from number `there` on.
  void compute(const float* samples, std::int64_t there, std::int64_t count,
               std::int32_t* words) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace melflow::fingerprint
