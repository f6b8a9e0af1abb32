// Mono samples from an open sound file, one call of its decoder after another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stages/audio/decoders/sound_file.h"
#include "stages/items.h"

namespace melflow {

enum class Downmix { mean, left, right };

/// The type that decode gives for files of this kind: int16 for mono of at most 16 bits.
SampleType sample_type(const SF_INFO& info);

class SampleReader {
 public:
  /// [frames] that are read at once where they pass through a buffer; less where a frame has many
  /// channels.
  static constexpr std::int64_t kChunk = 4096;

  /// Requires sound.ok().
  SampleReader(SoundFile sound, Downmix downmix);

  /// Up to `want` samples; 0: there are no more.
  std::int64_t read(std::byte* out, std::int64_t want);

  [[nodiscard]] SampleType type() const { return type_; }
  /// Samples so far.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The first sample that was no finite number, or -1.
  [[nodiscard]] std::int64_t bad_sample() const { return bad_sample_; }
  /// What was wrong so far.
  [[nodiscard]] std::optional<SoundDecoder::Fault> fault() const { return sound_.fault(); }
  [[nodiscard]] int io_error() const { return sound_.io_error(); }

 private:
  template <class Value>
  void mix(const Value* in, float scale, float* out, std::int64_t n) const;
  void find_bad(const float* samples, std::int64_t n);

  SoundFile sound_;
  Downmix downmix_;
  std::int64_t count_ = 0;
  int channels_;
  bool narrow_;         // no more than 16 bits
  std::int64_t chunk_;  // frames that pass through the buffer at once
  SampleType type_;
  std::int64_t bad_sample_ = -1;
  std::vector<float> interleaved_;
  std::vector<short> narrow_interleaved_;
};

}  // namespace melflow
