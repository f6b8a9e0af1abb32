// Reads mono samples from an open sound file.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stages/audio/decoders/sound_file.h"
#include "stages/items.h"
#include "stages/sample_meter.h"

namespace melflow {

/// How several channels become one.
struct Downmix {
  static constexpr int kEach = -1;
  int channel = 0;  ///< the channel to take, counted from 1; 0: the mean of all; kEach
  [[nodiscard]] bool is_each() const { return channel == kEach; }
};

/// The type of the decoded samples: int16 for mono files of at most 16 bits, else float32.
SampleType sample_type(const SF_INFO& info);

/// The levels of the channels and of their mean: sums of the magnitudes of some samples.
struct ChannelLevels {
  double channels = 0, mean = 0;

  /// Whether the channels cancel each other, as when one is the opposite of the other: their mean
  /// is 40 dB below them.
  [[nodiscard]] bool cancel() const { return mean < 0.01 * channels; }
};

class SampleReader {
 public:
  /// Frames read at once through a buffer; fewer with many channels.
  static constexpr std::int64_t kChunk = 4096;

  /// Requires sound.ok(), and that the file has the channel to take. `meter` is shown all channels
  /// of what is read; it may be null.
  SampleReader(SoundFile sound, Downmix downmix, SampleMeter* meter = nullptr);

  /// Reads up to `want` samples; returns how many, 0 at the end.
  std::int64_t read(std::byte* out, std::int64_t want);

  [[nodiscard]] SampleType type() const { return type_; }
  /// The number of samples read so far.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The number of the first sample that was infinite or not a number; -1 if there is none.
  [[nodiscard]] std::int64_t bad_sample() const { return bad_sample_; }
  /// The largest magnitude of the samples read so far; 0 for files of at most 16 bits.
  [[nodiscard]] float peak() const { return peak_; }
  /// The first fault so far, if any.
  [[nodiscard]] std::optional<SoundDecoder::Fault> fault() const { return sound_.fault(); }
  /// The first sample so far that may be at the wrong time (SoundDecoder::untimed_from).
  [[nodiscard]] std::int64_t untimed_from() const { return sound_.untimed_from(); }
  [[nodiscard]] int io_error() const { return sound_.io_error(); }
  /// The levels of the samples read so far; 0 if they are not the mean of channels.
  [[nodiscard]] const ChannelLevels& levels() const { return levels_; }

 private:
  template <class Value>
  void mix(const Value* in, float scale, float* out, std::int64_t n);
  void look_at(const float* samples, std::int64_t n);
  void show(const std::byte* out, std::int64_t n);

  SoundFile sound_;
  Downmix downmix_;
  SampleMeter* meter_;
  std::int64_t count_ = 0;
  int channels_;
  bool narrow_;         // at most 16 bits
  std::int64_t chunk_;  // frames read at once through the buffer
  SampleType type_;
  std::int64_t bad_sample_ = -1;
  float peak_ = 0;
  ChannelLevels levels_;
  std::vector<float> interleaved_;
  std::vector<short> narrow_interleaved_;
};

}  // namespace melflow
