// The interface of all libraries that decode sound files: gives interleaved samples, call by call,
// and the first fault. Each has its file: sndfile_decoder, flac_decoder, mp3_decoder,
// ffmpeg_decoder, plain_decoder. It gets the bytes of a file from memory, or from an open file
// through a window of memory: decoders read a few bytes here and there while they open a file, then
// larger pieces, and the window makes few system calls of both.
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
  /// Reads `fd` (kept open by the caller) in pieces of `window` bytes.
  SoundInput(int fd, std::uint64_t size, std::size_t window)
      : fd_(fd), window_(window), size_(size) {}

  /// Reads as many bytes as there are, up to out.size(), from at() on, and moves at() behind them.
  std::size_t read(std::span<std::byte> out);
  void seek(std::uint64_t at) { at_ = at; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Reads from any place, for headers; at() stays.
  [[nodiscard]] ReadAt reader();

  /// Shows decoders `value` in place of the byte at `at`. For a few bytes of a header.
  void replace(std::uint64_t at, std::byte value) { replaced_.push_back({at, value}); }
  /// Shows all bytes as they are, for another decoder.
  void restore() { replaced_.clear(); }

  /// The system's error number of a failed read, 0 without one.
  [[nodiscard]] int error() const { return error_; }

 private:
  struct Replaced {
    std::uint64_t at;
    std::byte value;
  };
  bool load();

  const std::byte* data_ = nullptr;  // the whole file, or
  int fd_ = -1;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  std::size_t window_size_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
  std::vector<Replaced> replaced_;
  int error_ = 0;
};

class SoundDecoder {
 public:
  virtual ~SoundDecoder() = default;

  /// The format. `frames` is the number in the header, SF_COUNT_MAX where the header has none.
  [[nodiscard]] const SF_INFO& info() const { return info_; }
  /// Whether info().frames is a number from the header, not an estimate.
  [[nodiscard]] bool is_count_known() const {
    return !is_guess_ && info_.frames < (std::int64_t{1} << 62);
  }

  /// Reads up to `frames` interleaved frames; returns how many, 0 at the end. As short only where
  /// samples have at most 16 bits (is_narrow).
  virtual std::int64_t read(short* out, std::int64_t frames) = 0;
  virtual std::int64_t read(float* out, std::int64_t frames) = 0;

  /// The first thing that was wrong or had to be dropped.
  struct Fault {
    std::int64_t after = 0;  ///< frames that had been read before it
    std::string what;
    bool is_change = false;  ///< no error: the rest of the stream has another format, such as rate
  };
  [[nodiscard]] virtual std::optional<Fault> fault() const = 0;

  static constexpr std::int64_t kAllTimed = std::numeric_limits<std::int64_t>::max();
  /// The first frame, of those read so far, that may not be at its time, because before it
  /// something was lost of which nobody knows how long it was; all behind it may not be either.
  /// kAllTimed: there is none.
  [[nodiscard]] virtual std::int64_t untimed_from() const { return kAllTimed; }

 protected:
  /// Errors in a row, without a sample between them, after which a decoder gives up.
  static constexpr int kMostErrors = 16;

  SF_INFO info_{};
  bool is_guess_ = false;
};

/// Whether samples have at most 16 bits.
bool is_narrow(const SF_INFO& info);

/// A decoder, or the reason why the file was refused ("" where the library gives none). `input`
/// must outlive it.
using OpenedSound = std::variant<std::unique_ptr<SoundDecoder>, std::string>;
OpenedSound open_sndfile(SoundInput& input, const SoundKind& kind);
OpenedSound open_flac(SoundInput& input, const SoundKind& kind);  ///< also in Ogg
OpenedSound open_mp3(SoundInput& input, const SoundKind& kind);
OpenedSound open_ffmpeg(SoundInput& input);  ///< refuses all without has_ffmpeg()
bool has_ffmpeg();                           ///< whether it was built in, and is here
std::unique_ptr<SoundDecoder> open_plain(SoundInput& input, const PlainSamples& samples);

}  // namespace melflow
