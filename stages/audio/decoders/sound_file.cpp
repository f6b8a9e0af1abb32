#include "stages/audio/decoders/sound_file.h"

#include <utility>

#include <fmt/format.h>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/voc_blocks.h"

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
  if (kind.name == "WAV" || kind.name == "W64") {
    const FrameSize wrong = wrong_frame_size(input_->reader());
    if (!wrong.remark.empty() && !wrong.is_unknown) {
      reason_ = wrong.remark +
                "; which of them is right cannot be told: correct the header, or write the file "
                "anew from its source";
      return;
    }
  }
  if (kind.name == "VOC") {
    const auto blocks = voc_blocks(input_->reader());
    if (blocks && blocks->count > 1) return open_voc(*blocks);
  }
  const bool is_flac = kind.name == "FLAC" || kind.is_ogg_flac;
  OpenedSound opened = is_flac              ? open_flac(*input_, kind)
                       : kind.name == "MP3" ? open_mp3(*input_, kind)
                                            : open_sndfile(*input_, kind);
  // libsndfile refuses a file with another one behind it.
  if (opened.index() == 1 && input_->error() == 0 && kind.name == "WAV") {
    const std::uint64_t size = input_->size();
    const std::uint64_t stated = stated_size(input_->reader()).value_or(size);
    if (stated < size) {
      input_->shorten(stated);
      input_->seek(0);
      opened = open_sndfile(*input_, kind);
    }
  }
  const bool is_for_ffmpeg = is_left_to_ffmpeg(kind.name);
  if (opened.index() == 1 && input_->error() == 0 &&
      (is_for_ffmpeg || kind.name == "Ogg" || kind.name == "VOC" || kind.name.empty())) {
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

// libsndfile reads the first block of samples only.
void SoundFile::open_voc(const VocBlocks& blocks) {
  OpenedSound opened =
      blocks.are_alike && has_ffmpeg() ? open_ffmpeg(*input_, blocks.frames) : std::string();
  if (auto* decoder = std::get_if<0>(&opened)) {
    decoder_ = std::move(*decoder);
    is_by_ffmpeg_ = true;
  } else if (reason_ = std::get<1>(std::move(opened)); reason_.empty()) {
    reason_ = fmt::format(
        "its sound is in {} blocks{} convert it, for example to FLAC", blocks.count,
        blocks.are_alike ? ", and more than one is decoded only by FFmpeg's libraries (Debian: "
                           "libavformat59) and a melflow built with their headers; install them, or"
                         : " of several formats, of silence, or repeated;");
  }
}

std::string SoundFile::why() const { return why_not_sound(input_->reader(), reason_); }

}  // namespace melflow
