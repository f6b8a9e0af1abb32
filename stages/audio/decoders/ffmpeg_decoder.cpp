// Decodes formats that no other library here decodes (AAC and others in MP4, WebM, WMA, AMR) with
// FFmpeg. Its libraries are loaded at the first such file: they load over a hundred others, and a
// machine may lack them.
#include "stages/audio/decoders/sound_decoder.h"

#ifndef MELFLOW_HAS_FFMPEG

namespace melflow {
OpenedSound open_ffmpeg(SoundInput&, std::int64_t) { return std::string(); }
bool has_ffmpeg() { return false; }
}  // namespace melflow

#else

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

// The functions of FFmpeg that are used, by library.
#define MELFLOW_FFMPEG_UTIL(f)                                                               \
  f(av_malloc) f(av_freep) f(av_strdup) f(av_strerror) f(av_log_set_level) f(av_frame_alloc) \
      f(av_frame_free) f(av_sample_fmt_is_planar) f(av_get_packed_sample_fmt)
#define MELFLOW_FFMPEG_CODEC(f)                                                           \
  f(avcodec_alloc_context3) f(avcodec_free_context) f(avcodec_parameters_to_context)      \
      f(avcodec_open2) f(avcodec_send_packet) f(avcodec_receive_frame) f(av_packet_alloc) \
          f(av_packet_free) f(av_packet_unref)
#define MELFLOW_FFMPEG_FORMAT(f)                                                              \
  f(avio_alloc_context) f(avio_context_free) f(avformat_alloc_context) f(avformat_open_input) \
      f(avformat_close_input) f(avformat_find_stream_info) f(av_find_best_stream) f(av_read_frame)

namespace melflow {
namespace {

// FFmpeg's names for single-file formats with sound; not playlists, which name other files.
constexpr const char* kFormats = "mov,matroska,asf,aac,amr,ogg,ape,wv,tta,voc";
constexpr int kBuffer = 32 << 10;  // between the input and FFmpeg [bytes]

// The libraries of the major versions whose headers this was compiled with; within a major version
// the layout of structures is fixed.
class Ffmpeg {
 public:
  Ffmpeg() {
    const auto open = [](const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); };
    void* const util = open("libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR));
    void* const codec = open("libavcodec.so." AV_STRINGIFY(LIBAVCODEC_VERSION_MAJOR));
    void* const format = open("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR));
    if (util == nullptr || codec == nullptr || format == nullptr) return;
    is_here = true;
#define MELFLOW_GET_UTIL(name) get(name, util, #name);
#define MELFLOW_GET_CODEC(name) get(name, codec, #name);
#define MELFLOW_GET_FORMAT(name) get(name, format, #name);
    MELFLOW_FFMPEG_UTIL(MELFLOW_GET_UTIL)
    MELFLOW_FFMPEG_CODEC(MELFLOW_GET_CODEC)
    MELFLOW_FFMPEG_FORMAT(MELFLOW_GET_FORMAT)
    if (is_here) av_log_set_level(AV_LOG_QUIET);
  }

  bool is_here = false;
// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares that name
#define MELFLOW_DECLARE(name) decltype(&::name) name = nullptr;
  MELFLOW_FFMPEG_UTIL(MELFLOW_DECLARE)
  MELFLOW_FFMPEG_CODEC(MELFLOW_DECLARE)
  MELFLOW_FFMPEG_FORMAT(MELFLOW_DECLARE)

 private:
  template <class F>
  void get(F& function, void* library, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    is_here = is_here && function != nullptr;
  }
};

// The libraries are never unloaded.
const Ffmpeg& ffmpeg() {
  static const Ffmpeg loaded;
  return loaded;
}

struct Freer {
  void operator()(AVFormatContext* c) const { ffmpeg().avformat_close_input(&c); }
  void operator()(AVCodecContext* c) const { ffmpeg().avcodec_free_context(&c); }
  void operator()(AVFrame* f) const { ffmpeg().av_frame_free(&f); }
  void operator()(AVPacket* p) const { ffmpeg().av_packet_free(&p); }
  void operator()(AVIOContext* io) const {
    ffmpeg().av_freep(static_cast<void*>(&io->buffer));
    ffmpeg().avio_context_free(&io);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Freer>;

std::string text_of(int error) {
  if (error == AVERROR(ENOMEM))  // mostly because of a damaged file: no reason to end the run
    return "it asks for more memory than FFmpeg can have: damaged, or memory is short";
  // Some decoders return -1 for any error, which would read "Operation not permitted".
  if (error == -1) error = AVERROR_INVALIDDATA;
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  ffmpeg().av_strerror(error, text.data(), text.size());
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

// Returns sample number i of a channel, as a fraction of full scale.
float sample_of(const AVFrame& frame, int channel, int i) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool is_planar = ffmpeg().av_sample_fmt_is_planar(format) != 0;
  const int channels = frame.ch_layout.nb_channels;
  const std::uint8_t* data = frame.extended_data[is_planar ? channel : 0];
  const auto at = static_cast<std::size_t>(is_planar ? i : i * channels + channel);
  const auto get = [&](auto value) {
    std::memcpy(&value, data + at * sizeof(value), sizeof(value));
    return value;
  };
  switch (ffmpeg().av_get_packed_sample_fmt(format)) {
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
  const AVSampleFormat packed = ffmpeg().av_get_packed_sample_fmt(format);
  return packed == AV_SAMPLE_FMT_U8 || packed == AV_SAMPLE_FMT_S16 || packed == AV_SAMPLE_FMT_S32 ||
         packed == AV_SAMPLE_FMT_FLT || packed == AV_SAMPLE_FMT_DBL;
}

// Whether frames of a lossless codec have check sums.
bool has_check_sums(AVCodecID codec) {
  return codec == AV_CODEC_ID_TTA || codec == AV_CODEC_ID_WAVPACK || codec == AV_CODEC_ID_FLAC ||
         codec == AV_CODEC_ID_APE;
}

class FfmpegDecoder final : public SoundDecoder {
 public:
  FfmpegDecoder(SoundInput& input, std::int64_t frames) : input_(input) { reason_ = open(frames); }

  /// Why the file was refused; "" if it was not.
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
  // The decoder yields only floats.
  std::int64_t read(short*, std::int64_t) override { return 0; }

  [[nodiscard]] std::optional<Fault> fault() const override {
    std::optional<Fault> out = fault_;
    if (out) out->missing = missing();
    return out;
  }

 private:
  std::string open(std::int64_t frames) {
    input_.seek(0);
    auto* buffer = static_cast<unsigned char*>(ffmpeg().av_malloc(kBuffer));
    if (buffer == nullptr) throw std::bad_alloc();
    io_.reset(ffmpeg().avio_alloc_context(buffer, kBuffer, 0, &input_, on_read, nullptr, on_seek));
    AVFormatContext* context = ffmpeg().avformat_alloc_context();
    if (!io_ || context == nullptr) throw std::bad_alloc();
    context->pb = io_.get();
    context->format_whitelist = ffmpeg().av_strdup(kFormats);
    context->io_open = [](AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
      return AVERROR(EPERM);  // the file must not open others
    };
    // It frees the context on failure.
    if (const int e = ffmpeg().avformat_open_input(&context, "", nullptr, nullptr); e < 0)
      return text_of(e);
    context_.reset(context);
    if (const int e = ffmpeg().avformat_find_stream_info(context, nullptr); e < 0)
      return text_of(e);
    const AVCodec* found = nullptr;
    const int number = ffmpeg().av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, &found, 0);
    if (number == AVERROR_STREAM_NOT_FOUND) return "there is no sound in it";
    if (number < 0 || found == nullptr) return "FFmpeg here has no decoder for its sound";
    stream_ = context->streams[number];
    for (unsigned i = 0; i < context->nb_streams; ++i)
      if (static_cast<int>(i) != number) context->streams[i]->discard = AVDISCARD_ALL;
    codec_.reset(ffmpeg().avcodec_alloc_context3(found));
    frame_.reset(ffmpeg().av_frame_alloc());
    packet_.reset(ffmpeg().av_packet_alloc());
    if (!codec_ || !frame_ || !packet_) throw std::bad_alloc();
    if (const int e = ffmpeg().avcodec_parameters_to_context(codec_.get(), stream_->codecpar);
        e < 0)
      return text_of(e);
    codec_->thread_count = 1;  // files are decoded in parallel
    // Otherwise FFmpeg also yields data whose check sum is wrong.
    codec_->err_recognition = AV_EF_CRCCHECK;
    if (has_check_sums(codec_->codec_id)) codec_->err_recognition |= AV_EF_EXPLODE;
    codec_->pkt_timebase = stream_->time_base;
    if (const int e = ffmpeg().avcodec_open2(codec_.get(), found, nullptr); e < 0)
      return text_of(e);
    // Uses the decoded rate and channels: AAC headers state half of them for some profiles.
    if (!next_frame()) return fault_ ? fault_->what : "no frame of it can be decoded";
    info_.samplerate = frame_->sample_rate;
    info_.channels = frame_->ch_layout.nb_channels;
    info_.format = SF_FORMAT_RAW | SF_FORMAT_FLOAT;
    const double seconds = seconds_by_header();
    info_.frames = frames > 0    ? frames
                   : seconds > 0 ? static_cast<sf_count_t>(seconds * info_.samplerate)
                                 : SF_COUNT_MAX;
    is_guess_ = frames == 0;
    return "";
  }

  // Decodes the next samples into frame_; returns false at the end.
  bool next_frame() {
    used_ = there_ = 0;
    while (!is_over_) {
      const int got = ffmpeg().avcodec_receive_frame(codec_.get(), frame_.get());
      if (got == 0) {
        if (is_other_format()) return false;
        errors_ = 0;
        there_ = frame_->nb_samples;
        longest_frame_ = std::max(longest_frame_, there_);
        if (there_ > 0) return true;
        continue;
      }
      if (got == AVERROR_EOF) {
        is_over_ = true;
        note_missing();
      } else if (got != AVERROR(EAGAIN)) {
        note_packet(got);
      } else if (!is_drained_) {
        next_packet();
      } else {
        is_over_ = true;
      }
    }
    return false;
  }

  void next_packet() {
    const int got = ffmpeg().av_read_frame(context_.get(), packet_.get());
    if (got == 0 && packet_->stream_index == stream_->index) {
      ++packets_;
      packet_bytes_ = packet_->size;
      bytes_ += packet_bytes_;
      if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) note_packet(AVERROR_INVALIDDATA);
      if (const int e = ffmpeg().avcodec_send_packet(codec_.get(), packet_.get()); e < 0)
        note_packet(e);
    } else if (got < 0) {
      if (got != AVERROR_EOF) note(got);
      if (io_->error < 0 && io_->error != AVERROR_EOF) note(io_->error);
      ffmpeg().avcodec_send_packet(codec_.get(), nullptr);
      is_drained_ = true;
    }
    ffmpeg().av_packet_unref(packet_.get());
  }

  // Whether the decoded frame has another rate or other channels than the first.
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
                                 "channels: the rest is dropped",
                                 rate, channels, info_.samplerate, info_.channels),
                     true};
    return is_over_ = true;
  }

  // An error of the last packet, which is lost.
  void note_packet(int error) {
    if (last_bad_ != packets_) {
      ++bad_;
      bad_bytes_ += packet_bytes_;
      last_bad_ = packets_;
    }
    note(error);
  }

  void note(int error) {
    if (!fault_) fault_ = Fault{count_, text_of(error), false};
    is_over_ = is_over_ || ++errors_ >= kMostErrors;
  }

  // Notes if the file ended too early: MP4 counts its packets, other formats state a length.
  void note_missing() {
    if (fault_ || info_.samplerate == 0) return;
    const double there = static_cast<double>(count_) / info_.samplerate;
    if (counted_packets() > packets_)
      fault_ =
          Fault{count_, fmt::format("ends after {} of {} packets", packets_, counted_packets())};
    else if (const double all = seconds_by_header(); all > there + slack())
      fault_ = Fault{count_, fmt::format("ends, and its header promises {:.3f} s", all)};
  }

  // Returns how many samples are known to be lost: by the count of packets, by the length that the
  // header states, or, if decoding ended early, by the bytes that are left.
  [[nodiscard]] std::int64_t missing() const {
    const auto rest = [this](auto lost, auto good) {
      return good > 0 ? static_cast<double>(count_) * static_cast<double>(lost) /
                            static_cast<double>(good)
                      : 0;
    };
    const std::int64_t good = packets_ - bad_;
    double out = rest(std::max(counted_packets(), packets_) - good, good);
    if (const double all = seconds_by_header(); all > 0)
      out = std::max(out, (all - slack()) * info_.samplerate - static_cast<double>(count_));
    else if (!is_drained_)
      out = std::max(out, rest(input_.size() - std::min(input_.at(), input_.size()), input_.at()));
    else if (counted_packets() == 0)
      out = std::max(out, rest(bytes_of_frames() - bytes_ + bad_bytes_, bytes_ - bad_bytes_));
    return static_cast<std::int64_t>(std::max(out, 0.0));
  }

  // Returns the bytes that should be packets. In AAC without a container these are all bytes after
  // the tags: FFmpeg drops the ones that are no frames without counting them.
  [[nodiscard]] std::int64_t bytes_of_frames() const {
    if (std::strcmp(context_->iformat->name, "aac") != 0) return bytes_;
    const auto all = input_.size() - sound_kind(input_.reader()).begin;
    return std::max(bytes_, static_cast<std::int64_t>(all));
  }

  // The number of packets if the header has it; for PCM the header counts something smaller.
  [[nodiscard]] std::int64_t counted_packets() const {
    const AVCodecID codec = stream_->codecpar->codec_id;
    const bool is_pcm = codec >= AV_CODEC_ID_FIRST_AUDIO && codec < AV_CODEC_ID_ADPCM_IMA_QT;
    return is_pcm ? 0 : stream_->nb_frames;
  }

  // Tolerance for the lengths that encoders write [s]: they may count padding.
  [[nodiscard]] double slack() const {
    return std::min(0.5, 3.0 * longest_frame_ / info_.samplerate);
  }

  // Returns 0 if no length is stated, or FFmpeg only guessed it from the size.
  [[nodiscard]] double seconds_by_header() const {
    if (context_->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE) return 0;
    if (stream_->duration != AV_NOPTS_VALUE)
      return static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
    return context_->duration != AV_NOPTS_VALUE
               ? static_cast<double>(context_->duration) / AV_TIME_BASE
               : 0;
  }

  SoundInput& input_;
  Owned<AVIOContext> io_;
  Owned<AVFormatContext> context_;  // freed before io_
  Owned<AVCodecContext> codec_;
  Owned<AVFrame> frame_;
  Owned<AVPacket> packet_;
  AVStream* stream_ = nullptr;  // owned by the context
  std::string reason_;
  std::optional<Fault> fault_;
  std::int64_t count_ = 0, packets_ = 0;
  std::int64_t bad_ = 0, last_bad_ = -1;  // packets that were not decoded, and the last of them
  std::int64_t bytes_ = 0, bad_bytes_ = 0, packet_bytes_ = 0;  // of all, of bad_, of the last
  int there_ = 0, used_ = 0;                                   // samples of frame_
  int longest_frame_ = 0;
  int errors_ = 0;
  bool is_drained_ = false, is_over_ = false;
};

}  // namespace

bool has_ffmpeg() { return ffmpeg().is_here; }

OpenedSound open_ffmpeg(SoundInput& input, std::int64_t frames) {
  if (!has_ffmpeg()) return std::string();
  auto out = std::make_unique<FfmpegDecoder>(input, frames);
  if (!out->reason().empty()) return out->reason();
  return OpenedSound(std::move(out));
}

}  // namespace melflow

#endif
