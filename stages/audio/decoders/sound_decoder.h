// What every library that decodes sound files is to melflow: interleaved samples, one call after
// another, and what was wrong on the way. One file each: sndfile_decoder, flac_decoder,
// mp3_decoder, plain_decoder.
#pragma once

#include <sndfile.h>

#include <cstdint>
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

  /// `frames` is what the header promises, SF_COUNT_MAX where it does not say.
  [[nodiscard]] const SF_INFO& info() const { return info_; }
  /// Whether that is a promise and not a guess.
  [[nodiscard]] bool is_count_known() const {
    return !is_guess_ && info_.frames < (std::int64_t{1} << 62);
  }

  /// Up to `frames` of them, as many as there are; 0: there are no more. As short where a sample
  /// has no more than 16 bits (is_narrow).
  virtual std::int64_t read(short* out, std::int64_t frames) = 0;
  virtual std::int64_t read(float* out, std::int64_t frames) = 0;

  /// Something was wrong or had to be left out; the first of it.
  struct Fault {
    std::int64_t after = 0;  ///< frames that had been read when it came up
    std::string what;
    bool is_change = false;  ///< nothing is wrong, but the rest is of another rate or the like
  };
  [[nodiscard]] virtual std::optional<Fault> fault() const = 0;

 protected:
  SF_INFO info_{};
  bool is_guess_ = false;
};

/// A sample has no more than 16 bits.
bool is_narrow(const SF_INFO& info);

/// A decoder, or why there is none ("" where the library does not say). `input` has to stay.
using OpenedSound = std::variant<std::unique_ptr<SoundDecoder>, std::string>;
OpenedSound open_sndfile(SoundInput& input);
OpenedSound open_flac(SoundInput& input, std::uint64_t marker);  ///< `marker`: where "fLaC" stands
OpenedSound open_mp3(SoundInput& input);
std::unique_ptr<SoundDecoder> open_plain(SoundInput& input, const PlainSamples& samples);

}  // namespace melflow
