// MP3 (and the other layers of MPEG audio) by libmpg123.
#include <mpg123.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {
namespace {

struct Mp3Deleter {
  void operator()(mpg123_handle* handle) const { mpg123_delete(handle); }
};

// Longest gap between two frames that is skipped: pictures, tags and other data put there.
constexpr long kLongestGap = 1 << 20;
// Frames with another rate or channels, up to this many samples, count as stray bytes.
constexpr std::int64_t kFewSamples = 8 * 1152;
constexpr const char* kNoFrame = "there are bytes that are not a frame";

class Mp3Decoder final : public SoundDecoder {
 public:
  Mp3Decoder(SoundInput& input, const SoundKind& kind)
      : input_(input), start_(kind.begin), junk_(kind.junk) {
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
    input.seek(start_);
    if (mpg123_open_handle(mh, this) != MPG123_OK ||
        mpg123_getformat(mh, &rate_, &channels_, &encoding_) != MPG123_OK) {
      return;
    }
    const off_t length = mpg123_length(mh);
    is_guess_ = is_mp3_without_count(input.reader(), start_);
    if (kind.junk > 0)
      begin_ = fmt::format("its first {} bytes are neither a frame nor a tag", kind.junk);
    else if (is_mp3_without_begin(input.reader(), start_))
      begin_ = "its first frame needs bits of one before it, which is not there";
    info_.samplerate = static_cast<int>(rate_);
    info_.channels = channels_now_ = channels_;
    info_.frames = length > 0 ? length : SF_COUNT_MAX;
    info_.format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  }

  [[nodiscard]] bool is_open() const { return info_.channels > 0; }

  std::int64_t read(float* out, std::int64_t frames) override {
    std::int64_t done = 0;
    while (done < frames && !is_over_) {
      if (frame_left_ == 0) next_frame();
      const std::int64_t n = is_changed_ ? frame_left_ : std::min(frame_left_, frames - done);
      if (is_changed_) {
        left_out_ += n;
      } else if (n > 0) {
        std::memcpy(out + done * channels_, frame_,
                    sizeof(float) * static_cast<std::size_t>(n * channels_));
        frame_ += sizeof(float) * static_cast<std::size_t>(n * channels_);
        count_ += n;
        done += n;
      }
      frame_left_ -= n;
    }
    return done;
  }
  // The library yields only floats.
  std::int64_t read(short*, std::int64_t) override { return 0; }

  [[nodiscard]] std::optional<Fault> fault() const override {
    if (is_changed_)
      return Fault{changed_at_, fmt::format("{}: {} samples are dropped", change_, left_out_), true,
                   left_out_ + missing()};
    if (fault_at_ >= 0) return Fault{fault_at_, what_, false, missing()};
    if (!begin_.empty()) return Fault{0, begin_, false, missing()};
    return std::nullopt;
  }
  // Frames have no numbers, so all times after a fault are uncertain.
  [[nodiscard]] std::int64_t untimed_from() const override {
    return fault_at_ < 0 ? kAllTimed : fault_at_;
  }

 private:
  // Decodes the next frame, in its own format; yields no samples if there is a fault to report.
  void next_frame() {
    off_t number = 0;
    std::size_t bytes = 0;
    const int status = mpg123_decode_frame(handle_.get(), &number, &frame_, &bytes);
    if (status == MPG123_OK) {
      frame_left_ = static_cast<std::int64_t>(bytes / sizeof(float)) / channels_now_;
      if (bytes > 0) errors_ = 0;
      look_at_place();
    } else if (status == MPG123_NEW_FORMAT) {
      look_at_format();
    } else if (status == MPG123_DONE || status == MPG123_NEED_MORE) {
      is_over_ = true;
      look_at_end();
    } else {
      if (mpg123_errcode(handle_.get()) == MPG123_OUT_OF_MEM) throw std::bad_alloc();
      note(mpg123_strerror(handle_.get()), count_);
      is_over_ = ++errors_ >= kMostErrors;
    }
  }

  // Notes a fault if a frame does not begin where the previous one ended.
  void look_at_place() {
    mpg123_frameinfo frame{};
    const off_t from_start = mpg123_framepos(handle_.get());
    if (from_start < 0 || mpg123_info(handle_.get(), &frame) != MPG123_OK) return;
    const off_t at = static_cast<off_t>(start_) + from_start;
    if (end_ >= 0 && at != end_ &&
        !are_tags(input_.reader(), static_cast<std::uint64_t>(end_),
                  static_cast<std::uint64_t>(at))) {
      note(kNoFrame, count_);
      lost_bytes_ += std::max<std::int64_t>(0, at - end_);
    }
    frame_at_ = at;
    end_ = at + frame.framesize;
  }

  // Notes a fault if a frame begins after the last whole one: the file is cut off in it. If frames
  // are counted, the last ones may have been dropped as padding, and if many are missing the count
  // tells more.
  void look_at_end() {
    const auto size = static_cast<off_t>(input_.size());
    if (end_ < 0 || (!is_guess_ && count_ + 2 * 1152 < info_.frames)) return;
    // The bits that frames of one recording share: sync, version, layer and sample rate.
    constexpr std::uint32_t kAlike = 0xFFFE0C00;
    while (end_ < size) {
      const std::uint32_t next = header_at(end_);
      if (next == 0 || (next & kAlike) != (header_at(frame_at_) & kAlike))
        return look_at_rest(static_cast<std::uint64_t>(end_), input_.size());
      const auto bytes =
          static_cast<off_t>(mp3_frame_size(input_.reader(), static_cast<std::uint64_t>(end_)));
      if (is_guess_ || end_ + bytes > size)
        return note(
            fmt::format("the file ends in a frame, of which {} bytes are there", size - end_),
            count_);
      if (bytes == 0) return;
      end_ += bytes;
    }
  }
  // Notes a fault if many bytes after the last frame are no tags, and no count says that it was the
  // last one. Bytes behind MPEG audio in a WAV are its chunks.
  void look_at_rest(std::uint64_t from, std::uint64_t size) {
    constexpr std::uint64_t kFew = 4096;
    constexpr std::uint32_t kRiff = 0x52494646;
    if (!is_guess_ || size - from <= kFew || are_tags(input_.reader(), from, size) ||
        header_at(0) == kRiff)
      return;
    note(fmt::format("its last {} bytes are neither a frame nor a tag", size - from), count_);
    lost_bytes_ += static_cast<std::int64_t>(size - from);
  }
  // Returns the four bytes at `at`; 0 if there are fewer.
  [[nodiscard]] std::uint32_t header_at(off_t at) const {
    std::array<std::byte, 4> bytes{};
    if (input_.reader()(static_cast<std::uint64_t>(at), bytes) != bytes.size()) return 0;
    std::uint32_t out = 0;
    for (const std::byte b : bytes) out = out << 8 | std::to_integer<std::uint32_t>(b);
    return out;
  }

  void look_at_format() {
    long rate = 0;
    int channels = 0, encoding = 0;
    if (mpg123_getformat(handle_.get(), &rate, &channels, &encoding) != MPG123_OK) return;
    const bool is_same = rate == rate_ && channels == channels_;
    channels_now_ = channels;
    if (is_changed_ && is_same && left_out_ <= kFewSamples) {
      // That was not a frame but stray bytes that looked like one.
      is_changed_ = false;
      note(kNoFrame, changed_at_);
      left_out_ = 0;
    }
    if (is_changed_ || is_same) return;
    is_changed_ = true;
    changed_at_ = count_;
    change_ = fmt::format("from there on it has {} Hz, {} channels instead of {} Hz, {} channels",
                          rate, channels, rate_, channels_);
  }

  // Returns about how many samples were in the bytes that are no frames, if no count tells more.
  [[nodiscard]] std::int64_t missing() const {
    if (!is_guess_) return 0;
    const double all = static_cast<double>(input_.size() - start_ + junk_);
    const double lost = static_cast<double>(lost_bytes_ + static_cast<std::int64_t>(junk_));
    return lost < all ? static_cast<std::int64_t>(static_cast<double>(count_) * lost / (all - lost))
                      : 0;
  }

  // Only the first fault counts.
  void note(std::string what, std::int64_t at) {
    if (fault_at_ >= 0) return;
    fault_at_ = at;
    what_ = std::move(what);
  }

  static ssize_t on_read(void* self, void* out, std::size_t bytes) {
    return static_cast<ssize_t>(
        static_cast<Mp3Decoder*>(self)->input_.read({static_cast<std::byte*>(out), bytes}));
  }
  // The library sees the file from the first frame on.
  static off_t on_seek(void* self, off_t offset, int whence) {
    auto& input = static_cast<Mp3Decoder*>(self)->input_;
    const auto start = static_cast<off_t>(static_cast<Mp3Decoder*>(self)->start_);
    const auto base = whence == SEEK_CUR   ? static_cast<off_t>(input.at())
                      : whence == SEEK_END ? static_cast<off_t>(input.size())
                                           : start;
    off_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < start) return -1;
    input.seek(static_cast<std::uint64_t>(to));
    return to - start;
  }

  SoundInput& input_;
  std::uint64_t start_;  // of the first frame [bytes]
  std::uint64_t junk_;   // before it, neither frames nor tags [bytes]
  std::string begin_;    // the fault at the first frame
  std::unique_ptr<mpg123_handle, Mp3Deleter> handle_;
  long rate_ = 0;
  int channels_ = 0, channels_now_ = 0, encoding_ = 0, errors_ = 0;
  unsigned char* frame_ = nullptr;  // its samples that were not read, interleaved
  std::int64_t frame_left_ = 0;
  off_t frame_at_ = 0;           // position of the last frame [bytes]
  std::int64_t end_ = -1;        // the end of that frame [bytes]
  std::int64_t lost_bytes_ = 0;  // behind the first frame, neither frames nor tags
  std::int64_t count_ = 0, left_out_ = 0;
  std::int64_t fault_at_ = -1, changed_at_ = -1;
  std::string what_, change_;
  bool is_changed_ = false, is_over_ = false;
};

}  // namespace

OpenedSound open_mp3(SoundInput& input, const SoundKind& kind) {
  auto out = std::make_unique<Mp3Decoder>(input, kind);
  if (!out->is_open()) return std::string("no frame of it can be decoded");
  return OpenedSound(std::move(out));
}

}  // namespace melflow
