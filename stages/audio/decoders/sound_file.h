// A sound file, opened by the library for its kind: FLAC by libFLAC and MP3 by libmpg123, whose
// errors libsndfile would partly hide; plain samples without a library; all other kinds by
// libsndfile. FFmpeg, if built in, opens the files that these refuse, and VOC of several blocks.
#pragma once

#include <memory>
#include <string>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {

struct VocBlocks;

class SoundFile {
 public:
  explicit SoundFile(SoundInput input);

  /// False if it is not a sound file (see why()) or reading failed with io_error().
  [[nodiscard]] bool ok() const { return decoder_ != nullptr; }
  [[nodiscard]] std::string why() const;
  /// The library's reason alone; "" if there is none.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int io_error() const { return input_->error(); }

  /// The functions below require ok().
  [[nodiscard]] const SF_INFO& info() const { return decoder_->info(); }
  [[nodiscard]] bool is_count_known() const { return decoder_->is_count_known(); }
  template <class Sample>
  std::int64_t read(Sample* out, std::int64_t frames) {
    return decoder_->read(out, frames);
  }
  [[nodiscard]] bool is_by_ffmpeg() const { return is_by_ffmpeg_; }
  [[nodiscard]] std::optional<SoundDecoder::Fault> fault() const { return decoder_->fault(); }
  [[nodiscard]] std::int64_t untimed_from() const { return decoder_->untimed_from(); }

 private:
  void open(const SoundKind& kind);
  void open_voc(const VocBlocks& blocks);

  std::unique_ptr<SoundInput> input_;  // at a fixed address, to which the decoder refers
  std::unique_ptr<SoundDecoder> decoder_;
  std::string reason_;
  bool is_by_ffmpeg_ = false;
};

}  // namespace melflow
