// What no other library here decodes (AAC and what else is in MP4, WebM, WMA, AMR, FLAC in Ogg)
// by FFmpeg, where the program was built with it.
#include "stages/audio/decoders/sound_decoder.h"

#ifndef MELFLOW_HAS_FFMPEG

namespace melflow {
OpenedSound open_ffmpeg(SoundInput&) { return std::string(); }
bool has_ffmpeg() { return false; }
}  // namespace melflow

#else

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace melflow {
namespace {

// Names of FFmpeg's for formats of one file that hold sound; no playlist, which names other files.
constexpr const char* kFormats = "mov,matroska,asf,aac,amr,ogg,ape,wv,tta";
constexpr int kBuffer = 32 << 10;  // between the input and FFmpeg [bytes]
// Errors in a row without a sample between them.
constexpr int kMostErrors = 16;

template <auto kFree>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    kFree(&object);
  }
};
using Context = std::unique_ptr<AVFormatContext, FreeBy<avformat_close_input> >;
using Codec = std::unique_ptr<AVCodecContext, FreeBy<avcodec_free_context> >;
using Frame = std::unique_ptr<AVFrame, FreeBy<av_frame_free> >;
using Packet = std::unique_ptr<AVPacket, FreeBy<av_packet_free> >;

void free_io(AVIOContext** io) {
  av_freep(static_cast<void*>(&(*io)->buffer));
  avio_context_free(io);
}
using Io = std::unique_ptr<AVIOContext, FreeBy<free_io> >;

std::string text_of(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(error, text.data(), text.size());
  return text.data();
}

int on_read(void* user, std::uint8_t* out, int bytes) {
  auto& input = *static_cast<SoundInput*>(user);
  const std::size_t n =
      input.read({reinterpret_cast<std::byte*>(out), static_cast<std::size_t>(bytes)});
  if (n > 0) return static_cast<int>(n);
  return input.error() != 0 ? AVERROR(input.error()) : AVERROR_EOF;
}

std::int64_t on_seek(void* user, std::int64_t offset, int whence) {
  auto& input = *static_cast<SoundInput*>(user);
  const auto size = static_cast<std::int64_t>(input.size());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  const std::int64_t base = whence == SEEK_CUR   ? static_cast<std::int64_t>(input.at())
                            : whence == SEEK_END ? size
                                                 : 0;
  std::int64_t to = 0;
  if (__builtin_add_overflow(base, offset, &to) || to < 0) return AVERROR(EINVAL);
  input.seek(static_cast<std::uint64_t>(to));
  return to;
}

// Sample number i of a channel, as a fraction of full scale.
float sample_of(const AVFrame& frame, int channel, int i) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool is_planar = av_sample_fmt_is_planar(format) != 0;
  const int channels = frame.ch_layout.nb_channels;
  const std::uint8_t* data = frame.extended_data[is_planar ? channel : 0];
  const std::size_t at = static_cast<std::size_t>(is_planar ? i : i * channels + channel);
  const auto get = [&](auto value) {
    std::memcpy(&value, data + at * sizeof(value), sizeof(value));
    return value;
  };
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8:
      return (static_cast<float>(get(std::uint8_t{})) - 128) / 128;
    case AV_SAMPLE_FMT_S16:
      return static_cast<float>(get(std::int16_t{})) / 32768;
    case AV_SAMPLE_FMT_S32:
      return static_cast<float>(get(std::int32_t{})) / 2147483648.0F;
    case AV_SAMPLE_FMT_DBL:
      return static_cast<float>(get(double{}));
    default:
      return get(float{});
  }
}

bool is_known(AVSampleFormat format) {
  const AVSampleFormat packed = av_get_packed_sample_fmt(format);
  return packed == AV_SAMPLE_FMT_U8 || packed == AV_SAMPLE_FMT_S16 || packed == AV_SAMPLE_FMT_S32 ||
         packed == AV_SAMPLE_FMT_FLT || packed == AV_SAMPLE_FMT_DBL;
}

class FfmpegDecoder final : public SoundDecoder {
 public:
  explicit FfmpegDecoder(SoundInput& input) { reason_ = open(input); }

  /// Why it was refused; "" where it was not.
  [[nodiscard]] const std::string& reason() const { return reason_; }

  std::int64_t read(float* out, std::int64_t frames) override {
    std::int64_t done = 0;
    while (done < frames) {
      if (used_ == there_ && !next_frame()) break;
      const int n = static_cast<int>(std::min<std::int64_t>(frames - done, there_ - used_));
      for (int i = 0; i < n; ++i)
        for (int c = 0; c < info_.channels; ++c)
          out[(done + i) * info_.channels + c] = sample_of(*frame_, c, used_ + i);
      used_ += n;
      done += n;
      count_ += n;
    }
    return done;
  }
  // Samples are floats to FFmpeg, or are made so.
  std::int64_t read(short*, std::int64_t) override { return 0; }

  [[nodiscard]] std::optional<Fault> fault() const override { return fault_; }

 private:
  std::string open(SoundInput& input) {
    av_log_set_level(AV_LOG_QUIET);
    input.seek(0);
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
    if (buffer == nullptr) throw std::bad_alloc();
    io_.reset(avio_alloc_context(buffer, kBuffer, 0, &input, on_read, nullptr, on_seek));
    AVFormatContext* context = avformat_alloc_context();
    if (!io_ || context == nullptr) throw std::bad_alloc();
    context->pb = io_.get();
    context->format_whitelist = av_strdup(kFormats);
    context->io_open = [](AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
      return AVERROR(EPERM);  // a file is read and no other
    };
    // It frees the context where it fails.
    if (const int e = avformat_open_input(&context, "", nullptr, nullptr); e < 0) return refused(e);
    context_.reset(context);
    if (const int e = avformat_find_stream_info(context, nullptr); e < 0) return refused(e);
    const AVCodec* found = nullptr;
    const int number = av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, &found, 0);
    if (number == AVERROR_STREAM_NOT_FOUND) return "there is no sound in it";
    if (number < 0 || found == nullptr) return "FFmpeg here has no decoder for its sound";
    stream_ = context->streams[number];
    for (unsigned i = 0; i < context->nb_streams; ++i)
      if (static_cast<int>(i) != number) context->streams[i]->discard = AVDISCARD_ALL;
    codec_.reset(avcodec_alloc_context3(found));
    frame_.reset(av_frame_alloc());
    packet_.reset(av_packet_alloc());
    if (!codec_ || !frame_ || !packet_) throw std::bad_alloc();
    if (const int e = avcodec_parameters_to_context(codec_.get(), stream_->codecpar); e < 0)
      return refused(e);
    codec_->thread_count = 1;  // files are decoded beside each other
    codec_->pkt_timebase = stream_->time_base;
    if (const int e = avcodec_open2(codec_.get(), found, nullptr); e < 0) return refused(e);
    // Rate and channels as they are decoded: headers of AAC say half of them for some profiles.
    if (!next_frame()) return fault_ ? fault_->what : "no frame of it can be decoded";
    info_.samplerate = frame_->sample_rate;
    info_.channels = frame_->ch_layout.nb_channels;
    info_.format = SF_FORMAT_RAW | SF_FORMAT_FLOAT;
    const double seconds = seconds_by_header();
    info_.frames = seconds > 0 ? static_cast<sf_count_t>(seconds * info_.samplerate) : SF_COUNT_MAX;
    is_guess_ = true;
    return "";
  }

  static std::string refused(int error) {
    if (error == AVERROR(ENOMEM)) throw std::bad_alloc();
    return text_of(error);
  }

  // The next samples, at frame_; false at the end.
  bool next_frame() {
    used_ = there_ = 0;
    while (!is_over_) {
      const int got = avcodec_receive_frame(codec_.get(), frame_.get());
      if (got == 0) {
        if (is_other_format()) return false;
        errors_ = 0;
        there_ = frame_->nb_samples;
        if (there_ > 0) return true;
        continue;
      }
      if (got == AVERROR_EOF) {
        is_over_ = true;
        note_missing();
      } else if (got != AVERROR(EAGAIN)) {
        note(got);
      } else if (!is_drained_) {
        next_packet();
      } else {
        is_over_ = true;
      }
    }
    return false;
  }

  void next_packet() {
    const int got = av_read_frame(context_.get(), packet_.get());
    if (got == 0 && packet_->stream_index == stream_->index) {
      ++packets_;
      if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) note(AVERROR_INVALIDDATA);
      if (const int e = avcodec_send_packet(codec_.get(), packet_.get()); e < 0) note(e);
    } else if (got < 0) {
      if (got != AVERROR_EOF) note(got);
      if (io_->error < 0 && io_->error != AVERROR_EOF) note(io_->error);
      avcodec_send_packet(codec_.get(), nullptr);
      is_drained_ = true;
    }
    av_packet_unref(packet_.get());
  }

  // Whether what was decoded has another rate or other channels than the beginning.
  bool is_other_format() {
    const int rate = frame_->sample_rate, channels = frame_->ch_layout.nb_channels;
    if (!is_known(static_cast<AVSampleFormat>(frame_->format))) {
      note(AVERROR_PATCHWELCOME);
      return is_over_ = true;
    }
    if (info_.channels == 0 || (rate == info_.samplerate && channels == info_.channels))
      return false;
    if (!fault_)
      fault_ = Fault{count_,
                     fmt::format("from there on it has {} Hz, {} channels instead of {} Hz, {} "
                                 "channels: the rest is left out",
                                 rate, channels, info_.samplerate, info_.channels),
                     true};
    return is_over_ = true;
  }

  void note(int error) {
    if (error == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (!fault_) fault_ = Fault{count_, text_of(error), false};
    is_over_ = is_over_ || ++errors_ >= kMostErrors;
  }

  // Whether the file ended before it should: MP4 counts its packets, others give a length.
  void note_missing() {
    if (fault_ || info_.samplerate == 0) return;
    constexpr double kSlack = 0.5;  // [s] that encoders' lengths are off by
    const double there = static_cast<double>(count_ + there_) / info_.samplerate;
    if (stream_->nb_frames > packets_)
      fault_ =
          Fault{count_, fmt::format("ends behind {} of {} packets", packets_, stream_->nb_frames)};
    else if (const double all = seconds_by_header(); all > there + kSlack)
      fault_ = Fault{count_, fmt::format("ends, and its header promises {:.3f} s", all)};
  }

  // 0 where none is given, or only guessed of the size.
  [[nodiscard]] double seconds_by_header() const {
    if (context_->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE) return 0;
    if (stream_->duration != AV_NOPTS_VALUE)
      return static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
    return context_->duration != AV_NOPTS_VALUE
               ? static_cast<double>(context_->duration) / AV_TIME_BASE
               : 0;
  }

  Io io_;
  Context context_;  // before io_ is gone
  Codec codec_;
  Frame frame_;
  Packet packet_;
  AVStream* stream_ = nullptr;  // of the context
  std::string reason_;
  std::optional<Fault> fault_;
  std::int64_t count_ = 0, packets_ = 0;
  int there_ = 0, used_ = 0;  // samples of frame_
  int errors_ = 0;
  bool is_drained_ = false, is_over_ = false;
};

}  // namespace

bool has_ffmpeg() { return true; }

OpenedSound open_ffmpeg(SoundInput& input) {
  auto out = std::make_unique<FfmpegDecoder>(input);
  if (!out->reason().empty()) return out->reason();
  return OpenedSound(std::move(out));
}

}  // namespace melflow

#endif
