// What the first bytes of a file say: for messages, since libsndfile corrects wrong sizes silently
// and its words for a file it refuses mislead ("File does not exist"); and where the samples of the
// commonest kind are, which need no decoder.
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
  int sample_rate = 0;     ///< [Hz]
  std::size_t offset = 0;  ///< of the first one [bytes], even
  std::int64_t count = 0;
};
/// Of a WAV file that is in every respect what its header says; nothing for any other, which is the
/// decoder's to judge.
std::optional<PlainSamples> plain_samples(std::span<const std::byte> file);

/// Reads the bytes of a file from a place on; returns how many there were.
using ReadAt = std::function<std::size_t(std::uint64_t at, std::span<std::byte> out)>;

/// Why libsndfile may have refused a file.
std::string why_not_sound(const ReadAt& read);

/// An MP3 without a count of its frames (a Xing, Info or VBRI header): its length is a guess from
/// its size and its first bit rate.
bool is_mp3_without_count(const ReadAt& read);

/// The header was written before the length was known, and never completed: the size in it is 0.
bool is_header_unfinished(const ReadAt& read);

/// A remark when a file of `size` bytes is cut off, as far as its container tells, else "". RIFF
/// and FORM headers promise a number of bytes (0 and 2^32 - 1 are what programs write that do not
/// know it yet; they promise nothing); the last page of an Ogg stream is marked.
std::string cut_off_remark(const ReadAt& read, std::uint64_t size);

}  // namespace melflow
