// The interface of all libraries that decode sound files: gives interleaved samples, call by call,
// and the first fault. Each has its file: sndfile_decoder, flac_decoder, mp3_decoder,
// ffmpeg_decoder, plain_decoder.
#pragma once

#include <sndfile.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "stages/audio/decoders/sound_header.h"
#include "stages/audio/decoders/sound_input.h"

namespace melflow {

class SoundDecoder {
 public:
  virtual ~SoundDecoder() = default;

  /// The format. `frames` is the number in the header, SF_COUNT_MAX where the header has none.
  [[nodiscard]] const SF_INFO& info() const { return info_; }
  /// Whether info().frames is a number from the header, not an estimate.
  [[nodiscard]] bool is_count_known() const {
    return !is_guess_ && info_.frames < (std::int64_t{1} << 62);
  }

  /// Reads up to `frames` interleaved frames; returns how many, 0 at the end. As short only where
  /// samples have at most 16 bits (is_narrow).
  virtual std::int64_t read(short* out, std::int64_t frames) = 0;
  virtual std::int64_t read(float* out, std::int64_t frames) = 0;

  /// The first thing that was wrong or had to be dropped.
  struct Fault {
    std::int64_t after = 0;  ///< frames that had been read before it
    std::string what;
    bool is_change = false;  ///< no error: the rest of the stream has another format, such as rate
  };
  [[nodiscard]] virtual std::optional<Fault> fault() const = 0;

  static constexpr std::int64_t kAllTimed = std::numeric_limits<std::int64_t>::max();
  /// The first frame, of those read so far, that may not be at its time, because before it something was lost of which
  /// nobody knows how long it was; all behind it may not be either. kAllTimed: there is none.
  [[nodiscard]] virtual std::int64_t untimed_from() const { return kAllTimed; }

 protected:
  /// Errors in a row, without a sample between them, after which a decoder gives up.
  static constexpr int kMostErrors = 16;

  SF_INFO info_{};
  bool is_guess_ = false;
};

/// Whether samples have at most 16 bits.
bool is_narrow(const SF_INFO& info);

/// A decoder, or the reason why the file was refused ("" where the library gives none). `input`
/// must outlive it.
using OpenedSound = std::variant<std::unique_ptr<SoundDecoder>, std::string>;
OpenedSound open_sndfile(SoundInput& input, const SoundKind& kind);
OpenedSound open_flac(SoundInput& input, const SoundKind& kind);  ///< also in Ogg
OpenedSound open_mp3(SoundInput& input, const SoundKind& kind);
OpenedSound open_ffmpeg(SoundInput& input);  ///< refuses all without has_ffmpeg()
bool has_ffmpeg();                           ///< whether it was built in, and is here
std::unique_ptr<SoundDecoder> open_plain(SoundInput& input, const PlainSamples& samples);

}  // namespace melflow
