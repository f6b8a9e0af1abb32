// Reads the first bytes of a file. Finds its kind, for messages, since libsndfile's reasons for
// refusing a file mislead ("File does not exist"); and finds the samples of the most common kind,
// which need no decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace melflow {

/// Whether the name ends like those of a format that may store samples uncompressed (WAV, AIFF, AU,
/// …).
bool has_plain_samples(std::string_view path);

/// 16-bit mono samples that a file holds uncompressed, little-endian.
struct PlainSamples {
  int sample_rate = 0;       ///< [Hz]
  std::uint64_t offset = 0;  ///< of the first sample [bytes], even
  std::int64_t count = 0;
};
/// Reads bytes of a file into `out`, from byte `at` on; returns how many there were.
using ReadAt = std::function<std::size_t(std::uint64_t at, std::span<std::byte> out)>;

/// Finds the samples of a WAV file that agrees with its header in every respect; nullopt for any
/// other file, which is left to the decoder.
std::optional<PlainSamples> plain_samples(std::span<const std::byte> file);
std::optional<PlainSamples> plain_samples(const ReadAt& read, std::uint64_t size);

/// Whether a chunk of RIFF or a related format may have that name: four printable letters.
bool is_chunk_name(std::span<const std::byte> head);

/// The kind of a file, by its first bytes after ID3 tags, which may precede any kind.
struct SoundKind {
  std::string_view name;  ///< "WAV", "FLAC", …; "" if it is not a sound file
  /// The first byte after the tags; for MP3 the first frame, also in a WAV.
  std::uint64_t begin = 0;
  std::uint64_t junk = 0;  ///< bytes before that frame that are not tags
  bool is_bw64 = false;
  bool is_ogg_flac = false, is_opus = false;  ///< kinds of "Ogg"
};
SoundKind sound_kind(const ReadAt& read);

/// Whether only FFmpeg decodes files of that kind.
bool is_left_to_ffmpeg(std::string_view kind);

/// Says why a file was refused. `reason`: the library's own reason, "" without one.
std::string why_not_sound(const ReadAt& read, const std::string& reason = "");

/// Whether the bytes [from, to) of a file are tags (ID3 of any version, APE) and nothing else.
bool are_tags(const ReadAt& read, std::uint64_t from, std::uint64_t to);

/// Whether the MP3 whose first frame is at `begin` has no frame count (a Xing, Info or VBRI
/// header), so that its length can only be estimated from its size and first bit rate.
bool is_mp3_without_count(const ReadAt& read, std::uint64_t begin);

/// The bytes of the MPEG audio frame at `at`; 0 if there is none or its bit rate is free.
std::uint64_t mp3_frame_size(const ReadAt& read, std::uint64_t at);

/// Whether that frame needs bits of earlier frames, which are missing: the file was cut out of a
/// stream (main_data_begin, ISO 11172-3, 2.4.1.7).
bool is_mp3_without_begin(const ReadAt& read, std::uint64_t begin);

}  // namespace melflow
