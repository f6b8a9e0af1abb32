// What the first bytes of a file say: of which kind it is, for messages, since libsndfile's words
// for a file it refuses mislead ("File does not exist"); and where the samples of the commonest
// kind are, which need no decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace melflow {

/// The name ends like that of a format that stores samples one by one (WAV, AIFF, AU, CAF, …).
bool has_plain_samples(std::string_view path);

/// 16-bit mono samples that lie in a file as they are, little-endian.
struct PlainSamples {
  int sample_rate = 0;       ///< [Hz]
  std::uint64_t offset = 0;  ///< of the first one [bytes], even
  std::int64_t count = 0;
};
/// Reads the bytes of a file from a place on; returns how many there were.
using ReadAt = std::function<std::size_t(std::uint64_t at, std::span<std::byte> out)>;

/// Of a WAV file that is in every respect what its header says; nothing for any other, which is the
/// decoder's to judge.
std::optional<PlainSamples> plain_samples(std::span<const std::byte> file);
std::optional<PlainSamples> plain_samples(const ReadAt& read, std::uint64_t size);

/// What the first bytes behind ID3 tags, which may stand before anything, are those of.
struct SoundKind {
  std::string_view name;    ///< "WAV", "FLAC", …; "" for what is no sound file
  std::uint64_t begin = 0;  ///< where it begins, behind the tags
  bool is_bw64 = false;
};
SoundKind sound_kind(const ReadAt& read);

/// Why a file was refused. `reason`: what the library says, if it says anything.
std::string why_not_sound(const ReadAt& read, const std::string& reason = "");

/// An MP3 without a count of its frames (a Xing, Info or VBRI header): its length is a guess from
/// its size and its first bit rate.
bool is_mp3_without_count(const ReadAt& read);

}  // namespace melflow
