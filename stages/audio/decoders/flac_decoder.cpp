// FLAC by libFLAC, in a file of its own or in Ogg. Every frame states its format, its number and a
// checksum, and all of these are checked. The header's count of samples is a promise, not a limit.
#include <FLAC/stream_decoder.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "stages/audio/decoders/ogg_pages.h"
#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

// Also libFLAC's error for header blocks that are too short, so no reason to end the run.
constexpr const char* kNoMemory = "libFLAC has no memory for it: damaged, or memory is short";

// Bytes of FLAC in Ogg before "fLaC", with which a FLAC file begins (RFC 9639, 10.1): the header of
// a page with one segment, and nine more.
constexpr std::uint64_t kOggHead = 28 + 9;

struct FlacDeleter {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

// The format that all frames must share with the first one.
struct Format {
  unsigned rate = 0, channels = 0, bits = 0;
  bool operator==(const Format&) const = default;
};

class FlacDecoder final : public SoundDecoder {
 public:
  FlacDecoder(SoundInput& input, const SoundKind& kind) : input_(input) {
    const bool is_ogg = kind.is_ogg_flac;
    const std::uint64_t marker = kind.begin + (is_ogg ? kOggHead : 0);
    // libFLAC stops after the number of samples in the header (36 bits; RFC 9639, 8.2), so these
    // bits are hidden from it.
    constexpr std::size_t kCount = 21;
    std::array<std::byte, 5> count{};
    if (input.reader()(marker + kCount, count) < count.size()) return;
    const auto high = std::to_integer<std::uint64_t>(count[0]);
    promised_ = static_cast<std::int64_t>(high & 0x0FU);
    for (std::size_t i = 1; i < count.size(); ++i)
      promised_ = promised_ << 8 | std::to_integer<std::int64_t>(count[i]);
    input.replace(marker + kCount, static_cast<std::byte>(high & 0xF0U));
    for (std::size_t i = 1; i < count.size(); ++i) input.replace(marker + kCount + i, std::byte{0});
    if (is_ogg)
      correct_check_sum(input, kind.begin);
    else
      hide_further_headers(marker);
    input.seek(kind.begin);
    decoder_.reset(FLAC__stream_decoder_new());
    if (!decoder_) throw std::bad_alloc();
    const auto init =
        is_ogg ? FLAC__stream_decoder_init_ogg_stream : FLAC__stream_decoder_init_stream;
    const auto status = init(decoder_.get(), on_read, nullptr, nullptr, nullptr, nullptr, on_frame,
                             on_metadata, on_error, this);
    if (status == FLAC__STREAM_DECODER_INIT_STATUS_UNSUPPORTED_CONTAINER) return;
    if (status != FLAC__STREAM_DECODER_INIT_STATUS_OK) throw std::bad_alloc();
    // The first frame determines the format, whatever the header says.
    while (rest_.empty() && step()) {
    }
    if (format_.channels == 0) return;
    look_at_header();
    info_.samplerate = static_cast<int>(format_.rate);
    info_.channels = static_cast<int>(format_.channels);
    info_.frames = promised_ > 0 ? promised_ : SF_COUNT_MAX;
    info_.format =
        (is_ogg ? SF_FORMAT_OGG : SF_FORMAT_FLAC) | (format_.bits <= 8    ? SF_FORMAT_PCM_S8
                                                     : format_.bits <= 16 ? SF_FORMAT_PCM_16
                                                     : format_.bits <= 24 ? SF_FORMAT_PCM_24
                                                                          : SF_FORMAT_PCM_32);
  }

  [[nodiscard]] bool is_open() const { return info_.channels > 0; }
  [[nodiscard]] bool is_without_memory() const { return wrong_ == kNoMemory; }

  std::int64_t read(short* out, std::int64_t frames) override { return read_as(out, frames); }
  std::int64_t read(float* out, std::int64_t frames) override { return read_as(out, frames); }

  [[nodiscard]] std::optional<Fault> fault() const override {
    if (changed_at_ >= 0)
      return Fault{changed_at_,
                   fmt::format("from there on it has {} Hz, {} channels, {} bits instead of {} Hz, "
                               "{} channels, {} bits: {} samples are dropped",
                               other_.rate, other_.channels, other_.bits, format_.rate,
                               format_.channels, format_.bits, left_out_),
                   true, left_out_ + missing_, silent_};
    // If there is a count, it shows how much is missing, and tags at the end do no harm.
    const bool is_bad_end = is_over_ && suspect_ != nullptr && promised_ == 0;
    if (wrong_at_ < 0 && !is_bad_end) {
      if (header_fault_.empty()) return std::nullopt;
      return Fault{0, header_fault_, false};
    }
    std::string what = wrong_at_ < 0 ? suspect_ : wrong_;
    if (promised_ == 0 && missing_ > 0) what += fmt::format(", {} samples are missing", missing_);
    if (silent_ > 0) what += fmt::format(", {} samples are silence instead", silent_);
    return Fault{wrong_at_ < 0 ? decoded_ : wrong_at_, std::move(what), false, missing_, silent_};
  }
  [[nodiscard]] std::int64_t untimed_from() const override { return untimed_from_; }

 private:
  using Read = FLAC__StreamDecoderReadStatus;
  using Write = FLAC__StreamDecoderWriteStatus;

  // Frames describe themselves, so nothing is lost if the header is wrong.
  void look_at_header() {
    if (header_.channels == 0)
      header_fault_ = "its header does not describe the stream";
    else if (is_described_twice_)
      header_fault_ = "its header describes the stream more than once";
    else if (header_ != format_)
      header_fault_ = fmt::format(
          "its header says {} Hz, {} channels, {} bits, its frames {} Hz, {} channels, {} bits",
          header_.rate, header_.channels, header_.bits, format_.rate, format_.channels,
          format_.bits);
  }

  template <class Sample>
  std::int64_t read_as(Sample* out, std::int64_t frames) {
    std::int64_t done = 0;
    do {
      const std::int64_t n = std::min(frames - done, count_ - given_);
      put(out + done * format_.channels, n);
      given_ += n;
      done += n;
    } while (done < frames && (given_ < count_ || step()));
    return done;
  }

  template <class Sample>
  void put(Sample* out, std::int64_t n) const {
    const FLAC__int32* from = rest_.data() + given_ * format_.channels;
    std::transform(from, from + n * format_.channels, out,
                   [this](FLAC__int32 value) { return as<Sample>(value); });
  }

  // Converts from steps of the format's own bits.
  template <class Sample>
  [[nodiscard]] Sample as(FLAC__int32 value) const {
    if constexpr (std::is_same_v<Sample, float>)
      return static_cast<float>(value) * scale_;
    else
      return static_cast<short>(value * factor_);
  }

  // Decodes one more frame; returns false at the end. Before a frame that is not the next one,
  // libFLAC yields silence for the missing frames if they are few.
  bool step() {
    rest_.clear();
    count_ = given_ = 0;
    while (!is_over_ && count_ == 0) {
      last_ = 0;
      const bool went = FLAC__stream_decoder_process_single(decoder_.get()) != 0;
      const auto state = FLAC__stream_decoder_get_state(decoder_.get());
      if (is_out_of_memory_) throw std::bad_alloc();
      if (state == FLAC__STREAM_DECODER_MEMORY_ALLOCATION_ERROR && wrong_at_ < 0) {
        wrong_at_ = decoded_;
        wrong_ = kNoMemory;
      }
      is_over_ = !went || state == FLAC__STREAM_DECODER_END_OF_STREAM;
    }
    if (last_ > 0 && untimed_from_ == kAllTimed && number_ - first_ > decoded_ - last_)
      untimed_from_ = decoded_ - last_;
    if (count_ > last_) {
      silent_ += count_ - last_;
      if (wrong_at_ < 0 || wrong_at_ > decoded_ - count_) {
        wrong_at_ = decoded_ - count_;
        wrong_ = "frames are missing";
      }
    }
    return count_ > 0;
  }

  static Read on_read(const FLAC__StreamDecoder*, FLAC__byte* out, std::size_t* bytes, void* self) {
    *bytes = static_cast<FlacDecoder*>(self)->input_.read(
        std::as_writable_bytes(std::span(out, *bytes)));
    return *bytes > 0 ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE
                      : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
  }

  static Write on_frame(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                        const FLAC__int32* const* samples, void* self) {
    auto& me = *static_cast<FlacDecoder*>(self);
    try {
      me.take(frame->header, samples);
    } catch (const std::bad_alloc&) {  // must not pass through a C library
      me.is_out_of_memory_ = true;
      return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
    }
    return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
  }

  // Hides all STREAMINFO blocks but the first, the only one that can be right. libFLAC would trust
  // the last one, and yield silence for frames that it then takes to be missing.
  void hide_further_headers(std::uint64_t marker) {
    constexpr int kMostBlocks = 128;
    constexpr std::byte kLast{0x80}, kPadding{1};
    const ReadAt read = input_.reader();
    std::uint64_t at = marker + 4;
    std::array<std::byte, 4> block{};
    for (int n = 0; n < kMostBlocks && read(at, block) == block.size(); ++n) {
      const bool is_last = (block[0] & kLast) != std::byte{0};
      if (n > 0 && (block[0] & ~kLast) == std::byte{0}) {
        input_.replace(at, (block[0] & kLast) | kPadding);
        is_described_twice_ = true;
      }
      if (is_last) return;
      at += block.size() + (std::to_integer<std::uint64_t>(block[1]) << 16 |
                            std::to_integer<std::uint64_t>(block[2]) << 8 |
                            std::to_integer<std::uint64_t>(block[3]));
    }
  }

  static void on_metadata(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* block,
                          void* self) {
    const auto& info = block->data.stream_info;
    static_cast<FlacDecoder*>(self)->header_ = {info.sample_rate, info.channels,
                                                info.bits_per_sample};
  }

  void take(const FLAC__FrameHeader& header, const FLAC__int32* const* samples) {
    const Format format{header.sample_rate, header.channels, header.bits_per_sample};
    const std::int64_t size = header.blocksize;
    if (format_.channels == 0) {
      format_ = format;
      scale_ = std::ldexp(1.0F, 1 - static_cast<int>(format.bits));
      factor_ = format.bits < 16 ? 1 << (16 - format.bits) : 1;
    }
    if (changed_at_ < 0 && format != format_) {
      changed_at_ = decoded_;
      other_ = format;
    }
    if (changed_at_ >= 0) {
      left_out_ += size;
      return;
    }
    const auto number = static_cast<std::int64_t>(header.number.sample_number);
    if (decoded_ == 0) first_ = number;
    number_ = number;
    if (next_ >= 0 && number > next_) {
      if (suspect_ == nullptr) suspect_ = "frames are missing";
      missing_ += number - next_;
    }
    next_ = number + size;
    if (suspect_ != nullptr && wrong_at_ < 0) {
      wrong_at_ = decoded_;
      wrong_ = suspect_;
    }
    suspect_ = nullptr;
    const std::size_t channels = format.channels, begin = rest_.size();
    rest_.resize(begin + channels * static_cast<std::size_t>(size));
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
        rest_[begin + i * channels + c] = samples[c][i];
    count_ += size;
    last_ = size;
    decoded_ += size;
  }

  // Notes an error, which counts once a frame follows.
  static void on_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status,
                       void* self) {
    auto& me = *static_cast<FlacDecoder*>(self);
    if (me.suspect_ != nullptr) return;
    me.suspect_ = status == FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH
                      ? "the check sum of a frame is wrong"
                  : status == FLAC__STREAM_DECODER_ERROR_STATUS_LOST_SYNC
                      ? "there are bytes that are not a frame"
                      : "the header of a frame makes no sense";
  }

  SoundInput& input_;
  std::unique_ptr<FLAC__StreamDecoder, FlacDeleter> decoder_;
  std::int64_t promised_ = 0;  // samples by the header; 0: not known
  Format format_, other_, header_;
  bool is_described_twice_ = false;
  std::string header_fault_;
  float scale_ = 1;
  int factor_ = 1;
  std::vector<FLAC__int32> rest_;                  // samples of the last step, interleaved
  std::int64_t count_ = 0, given_ = 0, last_ = 0;  // in rest_: all, read, in the last frame
  std::int64_t decoded_ = 0, next_ = -1;
  std::int64_t first_ = 0, number_ = 0;  // of the first and the last frame
  std::int64_t untimed_from_ = kAllTimed;
  std::int64_t changed_at_ = -1, left_out_ = 0;
  const char* suspect_ = nullptr;  // an error after the last frame
  std::int64_t wrong_at_ = -1;
  std::string wrong_;
  std::int64_t missing_ = 0, silent_ = 0;
  bool is_over_ = false, is_out_of_memory_ = false;
};

}  // namespace

OpenedSound open_flac(SoundInput& input, const SoundKind& kind) {
  auto out = std::make_unique<FlacDecoder>(input, kind);
  if (!out->is_open())
    return std::string(out->is_without_memory() ? kNoMemory : "no frame of it can be decoded");
  return OpenedSound(std::move(out));
}

}  // namespace melflow
