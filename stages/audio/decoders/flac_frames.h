// Finds the places where a FLAC file can be cut: each frame can be decoded without those before it,
// and its header gives the number of its first sample (RFC 9639, sections 8 and 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {

/// A frame, from its header; samples are counted per channel.
struct FlacPlace {
  std::uint64_t at = 0;      ///< first byte in the file
  std::int64_t sample = 0;   ///< number of its first sample
  std::int64_t samples = 0;  ///< number of samples
};

class FlacFrames {
 public:
  /// Reads the header of a file of `size` bytes. Nothing where it is no FLAC file, or its frames
  /// cannot be located by their headers: it begins with another frame than the first, or has blocks
  /// of a fixed size that the header does not give.
  static std::optional<FlacFrames> find(ReadAt read, std::uint64_t size);

  /// A FLAC header with only what a decoder needs, and no count of samples. Followed by the bytes
  /// between two places, it makes a FLAC file of the frames between them.
  [[nodiscard]] std::span<const std::byte> head() const { return head_; }
  [[nodiscard]] FlacPlace first() const { return first_; }

  /// Whether the frame that completes `count` samples is undamaged, and every frame after it.
  [[nodiscard]] bool is_complete(std::int64_t count);

  /// A frame that begins at most `most` samples after `from`, and not much less; nothing where none
  /// is found, or once the bytes searched exceed many times the file. About once in 10^9 bytes
  /// other data looks like a frame's header, and frames may be missing before it: after cutting
  /// there, the decoded samples must be counted.
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
  std::uint64_t left_;  // bytes that may still be searched: files can be made to take forever
  std::vector<std::byte> head_;
  FlacPlace first_;
  std::int64_t block_size_ = 0;  // of every frame but the last [samples]; 0: it varies
  bool is_fixed_ = false;        // frames are counted, not samples
  int channels_ = 0;
  double bytes_per_sample_ = 1;  // of all channels; a guess
};

}  // namespace melflow
