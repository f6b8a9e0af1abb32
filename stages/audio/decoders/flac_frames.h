// Where a FLAC file can be cut: its frames can be decoded without those before them, and the header
// of each says which sample it begins with (RFC 9639, sections 8 and 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// A frame as its header tells; samples are counted for one channel.
struct FlacPlace {
  std::uint64_t at = 0;      ///< its first byte
  std::int64_t sample = 0;   ///< the number of its first sample
  std::int64_t samples = 0;  ///< how many it has
};

class FlacFrames {
 public:
  /// Nothing for what is no FLAC file, or for one whose frames do not say where they belong: it
  /// begins with another frame than the first, or blocks of a fixed size have none in the header.
  static std::optional<FlacFrames> find(ReadAt read, std::uint64_t size);

  /// A FLAC header without anything but what a decoder has to know, and without a count of samples.
  /// With the bytes from one place to another behind it, it is a FLAC file of those frames.
  [[nodiscard]] std::span<const std::byte> head() const { return head_; }
  [[nodiscard]] FlacPlace first() const { return first_; }

  /// The frame with which `count` samples are complete is there as it was written, and so is
  /// whatever follows it.
  [[nodiscard]] bool is_complete(std::int64_t count);

  /// A frame behind `from` that begins at most `most` samples later, and not much less; nothing
  /// where none is found. What looks like a frame's header may be something else, about once in
  /// 10^9 bytes tried, and frames may be missing before it: whoever cuts there has to count the
  /// samples. Nothing, too, once the file has been looked through many times over.
  [[nodiscard]] std::optional<FlacPlace> after(const FlacPlace& from, std::int64_t most);

 private:
  FlacFrames(ReadAt read, std::uint64_t size)
      : read_(std::move(read)), size_(size), left_(16 * size + (std::uint64_t{16} << 20)) {}
  bool read_header();
  [[nodiscard]] std::optional<FlacPlace> place(std::uint64_t where,
                                               std::span<const std::byte> b) const;
  [[nodiscard]] std::optional<FlacPlace> next(std::uint64_t from, std::uint64_t end);

  ReadAt read_;
  std::uint64_t size_;
  std::uint64_t left_;  // bytes that may still be looked at: files can be made to take forever
  std::vector<std::byte> head_;
  FlacPlace first_;
  std::int64_t block_size_ = 0;  // of every frame but the last [samples]; 0: it varies
  bool is_fixed_ = false;        // frames are counted, not samples
  int channels_ = 0;
  double bytes_per_sample_ = 1;  // of all channels; a guess
};

}  // namespace melflow
