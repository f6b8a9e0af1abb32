// words.h - the fingerprint of samples: a word of 32 bits every 12.5 ms.
//
// In:  mono samples at 4000 Hz or more.
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
//
// The rate is halved as often as it stays 4000 Hz or more; frames begin at the sample nearest to
// their time, so that recordings of different rates have nearly equal words at equal times.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace melflow::fingerprint {

inline constexpr int kLeastRate = 4000;          ///< [Hz]
inline constexpr int kWordsASecond = 80;         ///< also frames
inline constexpr int kFrame = 256;               ///< [samples at kLeastRate]
inline constexpr int kSmoothed = 25, kLag = 16;  ///< [frames]
inline constexpr int kBits = 32;
/// What a word depends on [s].
inline constexpr double kSpanSeconds = static_cast<double>(kFrame) / kLeastRate +
                                       static_cast<double>(kSmoothed - 1 + kLag) / kWordsASecond;

/// The words of a recording: at least one where there are samples, as silence follows a short one.
/// `rate`: [Hz], at least kLeastRate.
std::int64_t words_of(std::int64_t samples, int rate);

/// The constants for recordings of one rate.
class Kernel {
 public:
  /// `rate`: [Hz], at least kLeastRate. `instruction_set`: MelKernel's.
  Kernel(int rate, std::string_view instruction_set);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

 private:
  friend class WordStream;
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

/// The words of one recording, whose samples come in blocks of any sizes.
class WordStream {
 public:
  explicit WordStream(std::shared_ptr<const Kernel> kernel);
  WordStream(WordStream&&) noexcept;
  ~WordStream();
  /// Appends the words that the samples complete, and at the end of the recording all that are
  /// left.
  void add(const float* samples, std::int64_t count, bool is_last,
           std::vector<std::int32_t>& words);

 private:
  struct State;
  std::shared_ptr<const Kernel> kernel_;
  std::unique_ptr<State> state_;
};

}  // namespace melflow::fingerprint
