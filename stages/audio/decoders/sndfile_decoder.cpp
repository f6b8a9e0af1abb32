// Files that libsndfile reads. Always asks it for the same numbers of frames, whatever the caller
// requests: a call in which an error occurs yields nothing, or less than there is.
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <vector>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/ogg_pages.h"
#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

constexpr std::int64_t kStep = 1024, kMostValuesOfCall = 32768;  // frames and values per call

// Hides the number of samples to skip in a header of Opus (RFC 7845, 5.1) from libsndfile and
// returns it [samples at 48 kHz]. In a file cut out of a stream libsndfile would not skip them, but
// drop as many at the end.
std::int64_t take_opus_skip(SoundInput& input, const SoundKind& kind) {
  if (!kind.is_opus) return 0;
  const std::uint64_t at = kind.begin + 28 + 10;
  std::array<std::byte, 2> skip{};
  if (input.reader()(at, skip) < skip.size()) return 0;
  for (std::size_t i = 0; i < skip.size(); ++i) input.replace(at + i, std::byte{0});
  correct_check_sum(input, kind.begin);
  return std::to_integer<std::int64_t>(skip[0]) | std::to_integer<std::int64_t>(skip[1]) << 8;
}

// Returns the number of frames by the header for formats that libsndfile reads to the end of the
// file, whatever follows the samples; SF_COUNT_MAX for other formats.
std::int64_t counted_frames(SoundInput& input, const SF_INFO& info) {
  const int format = info.format & SF_FORMAT_TYPEMASK, type = info.format & SF_FORMAT_SUBMASK;
  const int bytes = type == SF_FORMAT_PCM_24                              ? 3
                    : type == SF_FORMAT_PCM_32 || type == SF_FORMAT_FLOAT ? 4
                    : type == SF_FORMAT_DOUBLE                            ? 8
                    : type == SF_FORMAT_PCM_16                            ? 2
                    : is_narrow(info)                                     ? 1
                                                                          : 0;
  const bool is_read_on = format == SF_FORMAT_W64 || format == SF_FORMAT_NIST ||
                          format == SF_FORMAT_VOC || format == SF_FORMAT_SVX;
  if (!is_read_on || bytes == 0) return SF_COUNT_MAX;
  const auto counted = samples_size(input.reader());
  return counted ? static_cast<std::int64_t>(*counted) / bytes / info.channels : SF_COUNT_MAX;
}

struct Closer {
  void operator()(SNDFILE* handle) const { sf_close(handle); }
};

class SndfileDecoder final : public SoundDecoder {
 public:
  SndfileDecoder(SoundInput& input, const SoundKind& kind) {
    const std::int64_t opus_skip = take_opus_skip(input, kind);
    static SF_VIRTUAL_IO io = {
        [](void* user) { return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->size()); },
        [](sf_count_t offset, int whence, void* user) -> sf_count_t {
          auto& in = *static_cast<SoundInput*>(user);
          const auto base = whence == SEEK_CUR   ? static_cast<sf_count_t>(in.at())
                            : whence == SEEK_END ? static_cast<sf_count_t>(in.size())
                                                 : 0;
          sf_count_t to = 0;
          if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
          in.seek(static_cast<std::uint64_t>(to));
          return to;
        },
        [](void* out, sf_count_t count, void* user) {
          return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->read(
              {static_cast<std::byte*>(out), static_cast<std::size_t>(count)}));
        },
        nullptr,
        [](void* user) { return static_cast<sf_count_t>(static_cast<SoundInput*>(user)->at()); },
    };
    handle_.reset(sf_open_virtual(&io, SFM_READ, &info_, &input));
    if (handle_ == nullptr || info_.channels <= 0) return;
    step_ = std::clamp<std::int64_t>(kMostValuesOfCall / info_.channels, 1, kStep);
    most_ = counted_frames(input, info_);
    info_.frames = std::min(info_.frames, most_);
    if (opus_skip > 0) leave_out(opus_skip * info_.samplerate / 48000);
  }
  [[nodiscard]] bool is_open() const { return handle_ != nullptr; }

  std::int64_t read(short* out, std::int64_t frames) override {
    return read_as(short_rest_, out, frames);
  }
  std::int64_t read(float* out, std::int64_t frames) override {
    return read_as(float_rest_, out, frames);
  }

  [[nodiscard]] std::optional<Fault> fault() const override {
    return fault_ && fault_->after <= given_ ? fault_ : std::nullopt;
  }

 private:
  // Samples of the last call that the caller has not taken yet, interleaved.
  template <class Sample>
  struct Rest {
    std::vector<Sample> samples;
    std::int64_t begin = 0, end = 0;  // frames
  };

  template <class Sample>
  std::int64_t read_as(Rest<Sample>& rest, Sample* out, std::int64_t frames) {
    std::int64_t done = 0;
    while (done < frames && (rest.begin < rest.end || !is_over_)) {
      Sample* const to = out + done * info_.channels;
      if (rest.begin == rest.end && frames - done >= step_) {
        done += step(to);
        continue;
      }
      if (rest.begin == rest.end) {
        rest.samples.resize(static_cast<std::size_t>(step_ * info_.channels));
        rest.begin = 0;
        rest.end = step(rest.samples.data());
      }
      const std::int64_t n = std::min(frames - done, rest.end - rest.begin);
      std::copy_n(rest.samples.data() + rest.begin * info_.channels, n * info_.channels, to);
      rest.begin += n;
      done += n;
    }
    given_ += done;
    return done;
  }

  std::int64_t step(short* out) {
    return noted(sf_readf_short(handle_.get(), out, most_of_step()));
  }
  std::int64_t step(float* out) {
    return noted(sf_readf_float(handle_.get(), out, most_of_step()));
  }
  [[nodiscard]] std::int64_t most_of_step() const { return std::min(step_, most_ - count_); }

  // Drops the first `frames`.
  void leave_out(std::int64_t frames) {
    std::vector<float> some(static_cast<std::size_t>(frames * info_.channels));
    info_.frames -= noted(sf_readf_float(handle_.get(), some.data(), frames));
    count_ = 0;
    if (fault_) fault_->after = 0;
  }

  // Notes the error at once, because libsndfile forgets it with the next call.
  std::int64_t noted(std::int64_t n) {
    n = std::max<std::int64_t>(n, 0);
    count_ += n;
    is_over_ = n == 0;
    if (!fault_ && sf_error(handle_.get()) != SF_ERR_NO_ERROR)
      fault_ = Fault{count_, sf_strerror(handle_.get()), false};
    return n;
  }

  std::unique_ptr<SNDFILE, Closer> handle_;
  Rest<short> short_rest_;
  Rest<float> float_rest_;
  std::int64_t step_ = 1, most_ = SF_COUNT_MAX;
  std::int64_t count_ = 0, given_ = 0;  // frames from libsndfile, and frames passed to the caller
  bool is_over_ = false;
  std::optional<Fault> fault_;
};

}  // namespace

bool is_narrow(const SF_INFO& info) {
  const int subtype = info.format & SF_FORMAT_SUBMASK;
  return subtype == SF_FORMAT_PCM_16 || subtype == SF_FORMAT_PCM_S8 ||
         subtype == SF_FORMAT_PCM_U8 || subtype == SF_FORMAT_ULAW || subtype == SF_FORMAT_ALAW;
}

// libsndfile keeps the reason for a refusal in one variable for all threads, so it is not usable.
OpenedSound open_sndfile(SoundInput& input, const SoundKind& kind) {
  auto out = std::make_unique<SndfileDecoder>(input, kind);
  if (!out->is_open()) return std::string();
  return OpenedSound(std::move(out));
}

}  // namespace melflow
