#include "stages/audio/decoders/sound_file.h"

#include <utility>

namespace melflow {

SoundFile::SoundFile(SoundInput input) : input_(std::make_unique<SoundInput>(std::move(input))) {
  const ReadAt read = input_->reader();
  const SoundKind kind = sound_kind(read);
  if (kind.is_bw64)  // equivalent to RF64, which libsndfile knows
    for (std::size_t i = 0; i < 4; ++i) input_->replace(i, static_cast<std::byte>("RF64"[i]));
  if (kind.name == "WAV") {
    if (const auto plain = plain_samples(read, input_->size())) {
      decoder_ = open_plain(*input_, *plain);
      return;
    }
  }
  open(kind);
}

void SoundFile::open(const SoundKind& kind) {
  const bool is_flac = kind.name == "FLAC" || kind.is_ogg_flac;
  OpenedSound opened = is_flac              ? open_flac(*input_, kind)
                       : kind.name == "MP3" ? open_mp3(*input_, kind)
                                            : open_sndfile(*input_, kind);
  const bool is_for_ffmpeg = is_left_to_ffmpeg(kind.name);
  if (opened.index() == 1 && input_->error() == 0 &&
      (is_for_ffmpeg || kind.name == "Ogg" || kind.name.empty())) {
    input_->restore();
    OpenedSound other = open_ffmpeg(*input_);
    is_by_ffmpeg_ = other.index() == 0;
    if (is_by_ffmpeg_ || is_for_ffmpeg) opened = std::move(other);
  }
  if (auto* decoder = std::get_if<0>(&opened))
    decoder_ = std::move(*decoder);
  else
    reason_ = std::get<1>(std::move(opened));
}

std::string SoundFile::why() const { return why_not_sound(input_->reader(), reason_); }

}  // namespace melflow
