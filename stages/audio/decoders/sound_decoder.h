// The interface of all libraries that decode sound files: it yields interleaved samples, call by
// call, and the first fault. Each library has its file: sndfile_decoder, flac_decoder, mp3_decoder,
// ffmpeg_decoder, plain_decoder. The bytes of a file come from memory, or from an open file through
// a window of memory: decoders read a few bytes here and there while they open a file, then larger
// pieces, and the window needs few system calls for both.
#pragma once

#include <sndfile.h>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

class SoundInput {
 public:
  /// Reads `data`, which must stay valid as long as this object lives.
  explicit SoundInput(std::span<const std::byte> data) : data_(data.data()), size_(data.size()) {}
  /// Reads `size` bytes of `fd` (kept open by the caller), from `begin` on, in pieces of `window`
  /// bytes.
  SoundInput(int fd, std::uint64_t begin, std::uint64_t size, std::size_t window)
      : fd_(fd), window_(window), begin_(begin), size_(size) {}

  /// Reads up to out.size() bytes from at() on, and moves at() past them. Returns their number.
  std::size_t read(std::span<std::byte> out);
  void seek(std::uint64_t at) { at_ = at; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Returns a reader for any position, for headers; at() does not change.
  [[nodiscard]] ReadAt reader();

  /// Shows decoders `value` instead of the byte at `at`. For a few bytes of a header.
  void replace(std::uint64_t at, std::byte value) { replaced_.push_back({at, value}); }
  /// Shows decoders no more than the first `size` bytes.
  void shorten(std::uint64_t size) { size_ = std::min(size_, size); }
  /// Undoes all replacements, for another decoder.
  void restore() { replaced_.clear(); }

  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Replaced {
    std::uint64_t at;
    std::byte value;
  };
  bool load();

  const std::byte* data_ = nullptr;  // the whole file, or null if it is read through fd_
  int fd_ = -1;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  std::size_t window_size_ = 0;
  std::uint64_t begin_ = 0, size_ = 0;
  std::uint64_t at_ = 0;
  std::vector<Replaced> replaced_;
  int error_ = 0;
};

/// What is wrong with a recording.
struct Damage {
  std::string remark;  ///< "" if nothing is
  double lost = 0;     ///< share of the recording that is known to be lost, 0 to 1
};

class SoundDecoder {
 public:
  virtual ~SoundDecoder() = default;

  /// The format. `frames` is the number in the header, SF_COUNT_MAX if the header has none.
  [[nodiscard]] const SF_INFO& info() const { return info_; }
  /// Whether info().frames is a number from the header, not an estimate.
  [[nodiscard]] bool is_count_known() const {
    return !is_guess_ && info_.frames < (std::int64_t{1} << 62);
  }

  /// Reads up to `frames` interleaved frames; returns how many, 0 at the end. As short only if
  /// samples have at most 16 bits (is_narrow).
  virtual std::int64_t read(short* out, std::int64_t frames) = 0;
  virtual std::int64_t read(float* out, std::int64_t frames) = 0;

  /// The first error in the file, or the first data that had to be dropped.
  struct Fault {
    std::int64_t after = 0;  ///< frames read before it
    std::string what;
    bool is_change = false;    ///< no error: the rest of the stream has another format
    std::int64_t missing = 0;  ///< frames that are known to be lost, beside what the header counts
    std::int64_t silent = 0;   ///< frames, of those read, that are silence in place of lost ones
  };
  [[nodiscard]] virtual std::optional<Fault> fault() const = 0;

  static constexpr std::int64_t kAllTimed = std::numeric_limits<std::int64_t>::max();
  /// The first frame, of those read so far, that may be at the wrong time, because a stretch of
  /// unknown length was lost before it; all later frames may be, too. kAllTimed: none.
  [[nodiscard]] virtual std::int64_t untimed_from() const { return kAllTimed; }

 protected:
  /// The number of errors in a row, without a sample between them, after which a decoder gives up.
  static constexpr int kMostErrors = 16;

  SF_INFO info_{};
  bool is_guess_ = false;
};

/// Whether samples have at most 16 bits.
bool is_narrow(const SF_INFO& info);

/// A decoder, or the reason why the file was refused ("" if the library states none). `input` must
/// outlive the decoder.
using OpenedSound = std::variant<std::unique_ptr<SoundDecoder>, std::string>;
OpenedSound open_sndfile(SoundInput& input, const SoundKind& kind);
OpenedSound open_flac(SoundInput& input, const SoundKind& kind);  ///< also in Ogg
OpenedSound open_mp3(SoundInput& input, const SoundKind& kind);
/// Refuses all files if !has_ffmpeg(). `frames`: their number by the container, where FFmpeg does
/// not tell it; 0: unknown.
OpenedSound open_ffmpeg(SoundInput& input, std::int64_t frames = 0);
bool has_ffmpeg();  ///< whether it was built in and can be loaded
std::unique_ptr<SoundDecoder> open_plain(SoundInput& input, const PlainSamples& samples);

}  // namespace melflow
