// MP3 (and the other layers of MPEG audio) by libmpg123.
#include <mpg123.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

struct Deleter {
  void operator()(mpg123_handle* handle) const { mpg123_delete(handle); }
};

// Bytes between two frames that are passed over: pictures, tags and what else has been put there.
constexpr long kLongestGap = 1 << 20;
// Errors in a row without a sample between them.
constexpr int kMostErrors = 16;
// Of frames at another rate or with other channels, before it goes on as it was.
constexpr std::int64_t kFewSamples = 8 * 1152;

class Mp3Decoder final : public SoundDecoder {
 public:
  explicit Mp3Decoder(SoundInput& input) : input_(input) {
    static const int ready = mpg123_init();
    int error = ready;
    if (ready == MPG123_OK) handle_.reset(mpg123_new(nullptr, &error));
    if (!handle_) {
      if (error == MPG123_OUT_OF_MEM) throw std::bad_alloc();
      return;
    }
    mpg123_handle* mh = handle_.get();
    mpg123_param(mh, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
    mpg123_param(mh, MPG123_ADD_FLAGS,
                 MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS | MPG123_SKIP_ID3V2, 0);
    mpg123_param(mh, MPG123_RESYNC_LIMIT, kLongestGap, 0);
    mpg123_replace_reader_handle(mh, on_read, on_seek, nullptr);
    input.seek(0);
    if (mpg123_open_handle(mh, &input_) != MPG123_OK ||
        mpg123_getformat(mh, &rate_, &channels_, &encoding_) != MPG123_OK) {
      return;
    }
    const off_t length = mpg123_length(mh);
    is_guess_ = is_mp3_without_count(input.reader());
    info_.samplerate = static_cast<int>(rate_);
    info_.channels = channels_now_ = channels_;
    info_.frames = length > 0 ? length : SF_COUNT_MAX;
    info_.format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  }

  [[nodiscard]] bool is_open() const { return info_.channels > 0; }

  std::int64_t read(float* out, std::int64_t frames) override {
    std::int64_t done = 0;
    while (done < frames && !is_over_) {
      if (is_changed_)
        leave_out();
      else
        done += read_some(out + done * channels_, frames - done);
    }
    return done;
  }
  // Samples are floats to the library.
  std::int64_t read(short*, std::int64_t) override { return 0; }

  [[nodiscard]] std::optional<Fault> fault() const override {
    if (fault_at_ < 0) return std::nullopt;
    if (is_changed_)
      return Fault{fault_at_, fmt::format("{}: {} samples are left out", what_, left_out_), true};
    return Fault{fault_at_, what_, false};
  }

 private:
  // One call of the library, of whole frames of its present format; what it gives counts even if it
  // has something to say about it.
  std::int64_t read_some(float* out, std::int64_t frames) {
    std::size_t bytes = 0;
    const int status =
        mpg123_read(handle_.get(), reinterpret_cast<unsigned char*>(out),
                    sizeof(float) * static_cast<std::size_t>(frames * channels_now_), &bytes);
    const auto got = static_cast<std::int64_t>(bytes / sizeof(float)) / channels_now_;
    (is_changed_ ? left_out_ : count_) += got;
    if (got > 0) errors_ = 0;
    if (status == MPG123_NEW_FORMAT) {
      look_at_format();
    } else if (status != MPG123_OK && status != MPG123_DONE && status != MPG123_NEED_MORE) {
      if (mpg123_errcode(handle_.get()) == MPG123_OUT_OF_MEM) throw std::bad_alloc();
      if (fault_at_ < 0) note(mpg123_strerror(handle_.get()));
      is_over_ = ++errors_ >= kMostErrors;
    } else if (status != MPG123_OK || got == 0) {
      is_over_ = true;
    }
    return got;
  }

  // How much is asked for does not depend on what the caller wants, which has other channels.
  void leave_out() {
    constexpr std::int64_t frames = 1152;
    passed_over_.resize(static_cast<std::size_t>(frames * channels_now_));
    read_some(passed_over_.data(), frames);
  }

  void look_at_format() {
    long rate = 0;
    int channels = 0, encoding = 0;
    if (mpg123_getformat(handle_.get(), &rate, &channels, &encoding) != MPG123_OK) return;
    const bool is_same = rate == rate_ && channels == channels_;
    channels_now_ = channels;
    if (is_changed_ && is_same && left_out_ <= kFewSamples) {
      // What looked like a frame among bytes that are none.
      is_changed_ = false;
      what_ = "there is something that is not a frame";
      left_out_ = 0;
    }
    if (is_changed_ || is_same) return;
    note(fmt::format("from there on it has {} Hz, {} channels instead of {} Hz, {} channels", rate,
                     channels, rate_, channels_));
    is_changed_ = true;
  }

  void note(std::string what) {
    fault_at_ = count_;
    what_ = std::move(what);
  }

  static ssize_t on_read(void* input, void* out, std::size_t bytes) {
    return static_cast<ssize_t>(
        static_cast<SoundInput*>(input)->read({static_cast<std::byte*>(out), bytes}));
  }
  static off_t on_seek(void* user, off_t offset, int whence) {
    auto& input = *static_cast<SoundInput*>(user);
    const auto base = whence == SEEK_CUR   ? static_cast<off_t>(input.at())
                      : whence == SEEK_END ? static_cast<off_t>(input.size())
                                           : 0;
    off_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
    input.seek(static_cast<std::uint64_t>(to));
    return to;
  }

  SoundInput& input_;
  std::unique_ptr<mpg123_handle, Deleter> handle_;
  long rate_ = 0;
  int channels_ = 0, channels_now_ = 0, encoding_ = 0, errors_ = 0;
  std::int64_t count_ = 0, left_out_ = 0;
  std::int64_t fault_at_ = -1;
  std::string what_;
  std::vector<float> passed_over_;  // samples in another format
  bool is_changed_ = false, is_over_ = false;
};

}  // namespace

OpenedSound open_mp3(SoundInput& input) {
  auto out = std::make_unique<Mp3Decoder>(input);
  if (!out->is_open()) return std::string("no frame of it can be decoded");
  return OpenedSound(std::move(out));
}

}  // namespace melflow
