#include "stages/audio/decoded_blocks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/sample_reader.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/sample_scale.h"

namespace melflow {

namespace {

constexpr std::int64_t kChunk = SampleReader::kChunk;
constexpr double kMostLost = 0.1 + 1e-9;  // share, for Truncated::tenth
constexpr const char* kCancel =
    "its channels cancel each other, almost nothing is left in their mean; downmix: left takes the "
    "first one";

// Returns a reader of a file's bytes, in memory or open.
ReadAt reader_of(const RawBytes& raw) {
  return [&raw](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= raw.size) return 0;
    const std::size_t want = std::min<std::uint64_t>(out.size(), raw.size - at);
    if (raw.data) {
      std::memcpy(out.data(), raw.data.data() + at, want);
      return want;
    }
    const ssize_t n = pread(raw.fd.get(), out.data(), want, static_cast<off_t>(raw.begin + at));
    return static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  };
}

class Decoder final : public BlockCursor {
 public:
  using Block = Expand<RawBytes, Waveform>::Block;

  Decoder(std::shared_ptr<const RawBytes> raw, SoundFile sound, const DecodeOptions& options,
          Downmix downmix, BlockSize block, NotedFile noted, std::unique_ptr<SampleMeter> meter)
      : noted_(std::move(noted)),
        meter_(std::move(meter)),
        raw_(std::move(raw)),
        info_(sound.info()),
        is_count_known_(sound.is_count_known()),
        is_mean_(downmix.channel == 0 && info_.channels > 1),
        reader_(std::in_place, std::move(sound), downmix, meter_.get()),
        options_(options),
        type_(reader_->type()) {
    block_frames_ = static_cast<std::int64_t>(block.bytes / size_of(type_));
    if (block.multiple > 0 && block.multiple <= block_frames_)
      block_frames_ -= block_frames_ % block.multiple;
    if (struct stat st{}; raw_->fd && fstat(raw_->fd.get(), &st) == 0) before_ = FileState(st);
    if (options_.fit) fit_ = options_.fit->at(info_.samplerate);
    ahead_.resize(static_cast<std::size_t>(kChunk) * size_of(type_));
  }

  ~Decoder() override {
    const auto mark = this->mark();
    reader_.reset();
  }

  Result<Block> next(ItemContext& context) override {
    const auto mark = this->mark();
    auto block = next_block(context);
    if (block && !block->more && raw_->fd)
      if (auto error = FileReader::check_unchanged(raw_->fd.get(), before_))
        return std::move(*error);
    return block;
  }

 private:
  [[nodiscard]] UnderWay::Mark mark() const {
    return {noted_.in.get(), noted_.file, options_.timeout};
  }

  Result<Block> next_block(ItemContext& context) {
    const std::int64_t want = block_size();
    auto buffer = std::make_shared<Buffer>(
        context.run().pool.lease(static_cast<std::size_t>(want) * size_of(type_)));
    std::int64_t have = take(buffer->data(), want);
    if (reader_->bad_sample() >= 0)
      return ItemError::failed(
          fmt::format("sample {} is not a finite number", reader_->bad_sample()));
    if (!over_ && fit_ < 0) look_ahead();
    if (!judged_ && (over_ || (fit_ >= 0 && given_ + want == fit_))) {
      judged_ = true;
      if (auto error = judge(context)) return std::move(*error);
    }
    if (fit_ >= 0 && have < want) {
      std::memset(buffer->data() + static_cast<std::size_t>(have) * size_of(type_), 0,
                  static_cast<std::size_t>(want - have) * size_of(type_));
      have = want;
    }
    auto out = std::make_shared<Waveform>();
    out->samples = {buffer, buffer->data(), have, type_};
    out->sample_rate = info_.samplerate;
    out->start = given_;
    out->first = given_ == 0;
    given_ += have;
    out->last = fit_ >= 0 ? given_ == fit_ : over_;
    out->file = {info_.samplerate, reader_->count(), is_count_known_ ? info_.frames : 0,
                 info_.channels, is_mean_};
    if (out->last && meter_ != nullptr) out->file.measured = meter_->finish(lost_);
    out->untimed_from = reader_->untimed_from();
    const bool more = !out->last;
    return Block{std::move(out), more};
  }

  std::int64_t block_size() const {
    if (fit_ >= 0) return std::min(block_frames_, fit_ - given_);
    // The header's count keeps the buffer of a small file small; it is not trusted otherwise.
    const std::int64_t left = info_.frames - given_;
    return left > 0 && left < block_frames_ ? std::max(left, ahead_count_) : block_frames_;
  }

  // Reads up to `want` frames into `out`; sets over_ if there are no more.
  std::int64_t take(std::byte* out, std::int64_t want) {
    std::int64_t have = std::min(want, ahead_count_);
    std::memcpy(out, ahead_.data(), static_cast<std::size_t>(have) * size_of(type_));
    ahead_count_ -= have;
    while (have < want && !over_) {
      const std::int64_t n =
          reader_->read(out + static_cast<std::size_t>(have) * size_of(type_), want - have);
      if (n <= 0) over_ = true;
      have += std::max<std::int64_t>(n, 0);
    }
    return have;
  }

  // Reads ahead: a block is known to be the last only when nothing follows it.
  void look_ahead() {
    if (ahead_count_ > 0) return;
    ahead_count_ = reader_->read(ahead_.data(), std::min(kChunk, block_frames_));
    over_ = ahead_count_ == 0;
  }

  // Checks, once at the end of the file, whether it had what its header promised.
  std::optional<ItemError> judge(ItemContext& context) {
    const std::int64_t decoded = reader_->count();
    if (reader_->io_error() != 0) {
      return ItemError::failed(
          fmt::format("cannot be read on: {}", std::strerror(reader_->io_error())));
    }
    EndedRecording ended{info_, is_count_known_, over_};
    if (fit_ >= 0) ended.wanted = fit_;
    auto [remark, lost] = damage_of(ended, *reader_, reader_of(*raw_), raw_->size);
    lost_ = lost;
    if (decoded == 0) {
      if (remark.empty() && is_header_unfinished(reader_of(*raw_), raw_->size))
        remark = "the header was never completed, the sizes in it are 0";
      if (!remark.empty()) return ItemError::failed("no sample can be read: " + remark);
      return ItemError::skipped("holds no samples");
    }
    if (!remark.empty() && options_.truncated == Truncated::fail) return ItemError::failed(remark);
    if (lost > kMostLost && options_.truncated == Truncated::tenth)
      return ItemError::failed(fmt::format(
          "{}; {:.1f}% of it is lost, more than a tenth (truncated: keep uses the rest)", remark,
          100 * lost));
    if (reader_->levels().cancel()) remark += (remark.empty() ? "" : "; ") + std::string(kCancel);
    if (const std::string scale = scale_remark(reader_->peak()); !scale.empty())
      remark += (remark.empty() ? "" : "; ") + scale;
    if (!remark.empty()) context.warn(remark);
    return std::nullopt;
  }

  NotedFile noted_;
  std::unique_ptr<SampleMeter> meter_;  // before reader_, which uses it
  double lost_ = 0;                     // share of the recording
  std::shared_ptr<const RawBytes> raw_;
  FileState before_;  // of a file that is read while it is decoded
  const SF_INFO info_;
  const bool is_count_known_;           // by the header, which may be wrong
  const bool is_mean_;                  // FileAudio::is_mean
  std::optional<SampleReader> reader_;  // until this ends
  const DecodeOptions& options_;
  SampleType type_;
  std::int64_t block_frames_ = 0;
  std::int64_t fit_ = -1;  // < 0: keep the length
  std::int64_t given_ = 0;
  bool over_ = false, judged_ = false;
  std::vector<std::byte> ahead_;
  std::int64_t ahead_count_ = 0;
};

// Samples that lie in the file's bytes unchanged: nothing is copied, and the block keeps the bytes.
// One block, so that the bytes are charged for as long as they exist.
class PlainBlock final : public BlockCursor {
 public:
  PlainBlock(std::shared_ptr<const RawBytes> raw, const PlainSamples& samples,
             std::unique_ptr<SampleMeter> meter)
      : raw_(std::move(raw)), samples_(samples), meter_(std::move(meter)) {}

  Result<Expand<RawBytes, Waveform>::Block> next(ItemContext&) override {
    auto out = std::make_shared<Waveform>();
    out->samples.data = raw_->data.data() + samples_.offset;
    out->samples.count = samples_.count;
    out->samples.type = SampleType::int16;
    const Buffer* bytes = &raw_->data;
    out->samples.owner = std::shared_ptr<const Buffer>(std::move(raw_), bytes);
    out->sample_rate = samples_.sample_rate;
    out->file = {samples_.sample_rate, samples_.count, samples_.count, 1};
    if (meter_ != nullptr) {
      meter_->push(reinterpret_cast<const std::int16_t*>(out->samples.data), samples_.count);
      out->file.measured = meter_->finish(0);
    }
    return Expand<RawBytes, Waveform>::Block{std::move(out), false};
  }

 private:
  std::shared_ptr<const RawBytes> raw_;
  PlainSamples samples_;
  std::unique_ptr<SampleMeter> meter_;
};

}  // namespace

std::unique_ptr<BlockCursor> decoded_blocks(std::shared_ptr<const RawBytes> raw, SoundFile sound,
                                            const DecodeOptions& options, Downmix downmix,
                                            BlockSize block, NotedFile noted,
                                            std::unique_ptr<SampleMeter> meter) {
  return std::make_unique<Decoder>(std::move(raw), std::move(sound), options, downmix, block,
                                   std::move(noted), std::move(meter));
}

std::unique_ptr<BlockCursor> plain_block(std::shared_ptr<const RawBytes> raw,
                                         const PlainSamples& samples,
                                         std::unique_ptr<SampleMeter> meter) {
  return std::make_unique<PlainBlock>(std::move(raw), samples, std::move(meter));
}

}  // namespace melflow
