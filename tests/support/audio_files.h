// Small sound files for tests, made with libsndfile, and typical ways to damage them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace melflow::test {

/// A kind of file that libsndfile writes and reads.
struct AudioKind {
  const char* name;    ///< "wav s16"
  const char* ending;  ///< "wav"
  int format;          ///< of SF_INFO
  int channels;
  bool narrow;    ///< mono samples of at most 16 bits, which decode keeps as int16
  bool lossless;  ///< decoding returns as many samples, unchanged but for their precision
};

/// Returns all kinds: WAV with 8 to 64 bits, A-law, mu-law and ADPCM, AIFF, AU, CAF, W64, RF64,
/// FLAC, OGG (Vorbis, Opus), MP3, mono and with more channels. All support 16 kHz.
std::span<const AudioKind> audio_kinds();
/// Returns the kind of this name; throws when there is none.
const AudioKind& audio_kind(const std::string& name);

/// Deterministic music: three gliding tones and some noise, in -0.8 .. 0.8, different in every
/// channel. Interleaved [frames * channels].
std::vector<float> test_signal(std::int64_t frames, int channels = 1, unsigned seed = 1);

/// Writes interleaved samples as `kind`; throws when libsndfile refuses.
void write_audio(const std::string& path, const AudioKind& kind, int sample_rate,
                 std::span<const float> interleaved);
/// Writes a typical corpus file: 16-bit mono WAV of test_signal().
void write_wav(const std::string& path, std::int64_t frames, int sample_rate = 16000,
               unsigned seed = 1);

/// Writes a mono MP3 of variable bit rate, whose first frame counts the others.
void write_vbr_mp3(const std::string& path, int sample_rate, std::span<const float> samples);
/// Returns the same MP3 without that frame.
std::string without_xing_frame(const std::string& mp3);

/// What libsndfile itself reads from a file, opened by its path and read in one call.
struct ReadAudio {
  int sample_rate = 0;
  int channels = 0;
  std::int64_t promised = 0;        ///< frames according to the header
  std::vector<float> interleaved;   ///< [frames * channels]
  std::vector<std::int16_t> int16;  ///< the same, read by sf_readf_short
  [[nodiscard]] std::int64_t frames() const {
    return static_cast<std::int64_t>(interleaved.size()) / channels;
  }
};
/// Reads a file; throws when it cannot be opened.
ReadAudio read_audio(const std::string& path);

/// Copies the first `bytes` bytes of a file; with a negative count, all but the last ones.
void copy_truncated(const std::string& from, const std::string& to, std::int64_t bytes);

/// Overwrites the sizes in the header of a RIFF WAV made here (no chunk after `data`).
void set_wav_sizes(std::string& bytes, std::uint32_t riff_size, std::uint32_t data_size);
/// Overwrites the 36-bit count of samples in a FLAC's STREAMINFO; 0 means unknown.
void set_flac_total(std::string& bytes, std::uint64_t samples);

}  // namespace melflow::test
