#include "stages/audio/store/stored_audio.h"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>

#include "stages/audio/reading/file_reader.h"

namespace melflow {
namespace {

class StoredBlocks final : public Expand<RawBytes, Waveform>::Cursor {
 public:
  StoredBlocks(std::shared_ptr<const StoredAudio> audio, std::int64_t most, bool is_mean)
      : audio_(std::move(audio)), most_(most), is_mean_(is_mean) {}

  Result<Expand<RawBytes, Waveform>::Block> next(ItemContext&) override {
    const StoredAudio::Info& info = audio_->info();
    auto out = std::make_shared<Waveform>();
    out->samples = audio_->at(given_, std::min(most_, info.count - given_));
    out->sample_rate = info.sample_rate;
    out->start = given_;
    out->first = given_ == 0;
    given_ += out->samples.count;
    out->last = given_ == info.count;
    out->stored = true;
    out->file = info.file;
    out->file.total = info.file.frames;
    out->file.is_mean = is_mean_ && info.file.channels > 1;
    const bool more = !out->last;
    return Expand<RawBytes, Waveform>::Block{std::move(out), more};
  }

 private:
  std::shared_ptr<const StoredAudio> audio_;
  std::int64_t most_;
  bool is_mean_;
  std::int64_t given_ = 0;
};

}  // namespace

std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> stored_blocks(
    const std::shared_ptr<const RawBytes>& raw, std::size_t block, bool is_mean) {
  const std::shared_ptr<const StoredAudio>& audio = raw->file->stored;
  if (!audio->verify()) return nullptr;
  return std::make_unique<StoredBlocks>(
      audio, static_cast<std::int64_t>(block / size_of(audio->info().type)), is_mean);
}

Result<std::shared_ptr<const RawBytes>> read_again(const RawBytes& raw, BufferPool& pool) {
  const FileReader reader(
      {.buffer = raw.window, .whole = 0, .noatime = true, .advise = Advise::sequential});
  return reader.read(raw.file, pool);
}

}  // namespace melflow
