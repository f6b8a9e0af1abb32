#include "stages/reading/sound_header.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace melflow {
namespace {

using Bytes = std::span<const std::byte>;

bool starts_with(Bytes bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

unsigned number(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

template <std::size_t N>
Bytes read_into(std::array<std::byte, N>& buffer, const ReadAt& read, std::uint64_t at = 0) {
  return Bytes(buffer).first(read(at, buffer));
}

bool is_mp3_frame(Bytes bytes) {
  return bytes.size() >= 2 && number(bytes, 0) == 0xFF && (number(bytes, 1) & 0xE0U) == 0xE0U;
}

std::uint32_t little_endian(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < count; ++i) out |= number(bytes, at + i) << (8 * i);
  return out;
}

// The size in a RIFF (little-endian) or FORM (big-endian) header.
std::optional<std::uint32_t> promised_size(Bytes head) {
  const bool riff = starts_with(head, "RIFF");
  if ((!riff && !starts_with(head, "FORM")) || head.size() < 12) return std::nullopt;
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= number(head, 4 + i) << (riff ? 8 * i : 24 - 8 * i);
  return size;
}

// The end of an Ogg stream (RFC 3533, 6): the last page has its flag "end of stream" and is whole.
std::string ogg_end_remark(const ReadAt& read, std::uint64_t size) {
  constexpr std::size_t kLongestPage = 27 + 255 + 255 * 255;
  std::vector<std::byte> buffer(std::min<std::uint64_t>(size, kLongestPage));
  const Bytes tail = Bytes(buffer).first(read(size - buffer.size(), buffer));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const std::size_t at = text.rfind("OggS");
  const Bytes page = at == text.npos ? Bytes{} : tail.subspan(at);
  if (page.size() >= 27) {
    const std::size_t segments = number(page, 26);
    std::size_t length = 27 + segments;
    for (std::size_t i = 0; i < segments && 27 + i < page.size(); ++i)
      length += number(page, 27 + i);
    const bool is_last = (number(page, 5) & 4U) != 0;
    if (is_last && length <= page.size()) return {};
  }
  return "short: the stream ends without its last page";
}

}  // namespace

bool has_plain_samples(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return false;
  const std::string ending(path.substr(dot + 1));
  constexpr std::array names{"wav", "aif", "aiff", "au", "snd", "w64", "rf64", "raw"};
  for (const char* name : names)
    if (strcasecmp(ending.c_str(), name) == 0) return true;
  return false;
}

// RIFF, then chunks of a name, a size and that many bytes, padded to even (Microsoft and IBM,
// Multimedia Programming Interface and Data Specifications 1.0, 1991). Format 0xFFFE says by a GUID
// that begins with the real format's number (Microsoft, Multiple channel audio data and WAVE
// files).
std::optional<PlainSamples> plain_samples(std::span<const std::byte> file) {
  if (!starts_with(file, "RIFF") || !starts_with(file, "WAVE", 8)) return std::nullopt;
  const std::uint64_t end = std::uint64_t{little_endian(file, 4, 4)} + 8;
  if (end != file.size()) return std::nullopt;
  PlainSamples out;
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t size = little_endian(file, at + 4, 4), body = at + 8;
    if (size > file.size() - body) return std::nullopt;
    if (starts_with(file, "fmt ", at)) {
      if (size < 16 || out.sample_rate != 0) return std::nullopt;
      std::uint32_t format = little_endian(file, body, 2);
      if (format == 0xFFFE && size >= 40 && little_endian(file, body + 18, 2) == 16)
        format = little_endian(file, body + 24, 4);
      const std::uint32_t channels = little_endian(file, body + 2, 2);
      const std::uint32_t rate = little_endian(file, body + 4, 4);
      const std::uint32_t step = little_endian(file, body + 12, 2);
      const std::uint32_t bits = little_endian(file, body + 14, 2);
      if (format != 1 || channels != 1 || step != 2 || bits != 16) return std::nullopt;
      if (rate == 0 || rate > 0x7FFFFFFFU) return std::nullopt;
      out.sample_rate = static_cast<int>(rate);
    } else if (starts_with(file, "data", at)) {
      if (out.sample_rate == 0 || size == 0 || size % 2 != 0) return std::nullopt;
      out.offset = body;
      out.count = static_cast<std::int64_t>(size / 2);
      return out;
    }
    at = body + size + size % 2;
  }
  return std::nullopt;
}

std::string why_not_sound(const ReadAt& read) {
  std::array<std::byte, 16> buffer;
  const Bytes head = read_into(buffer, read);
  std::string_view kind;
  if (starts_with(head, "RIFF") || starts_with(head, "RF64")) kind = "WAV";
  if (starts_with(head, "FORM")) kind = "AIFF";
  if (starts_with(head, "fLaC")) kind = "FLAC";
  if (starts_with(head, "OggS")) kind = "Ogg";
  if (starts_with(head, "ID3") || is_mp3_frame(head)) kind = "MP3";
  if (starts_with(head, "caff")) kind = "CAF";
  if (starts_with(head, "ftyp", 4))
    return "is MP4 or M4A, which cannot be decoded; convert it, to FLAC for example";
  if (kind.empty()) return "is no sound file, or of a kind that cannot be decoded";
  return fmt::format(
      "begins like {} but cannot be decoded: damaged, cut off, or of a variant that "
      "is not supported",
      kind);
}

bool is_mp3_without_count(const ReadAt& read) {
  std::array<std::byte, 2048> buffer;  // the longest first frame has 1441 bytes
  Bytes head = read_into(buffer, read);
  if (starts_with(head, "ID3") && head.size() >= 10) {
    // Four times seven bits, and ten bytes of header (id3.org, ID3v2.4.0, 3.1).
    std::uint64_t tag = 10;
    for (std::size_t i = 0; i < 4; ++i)
      tag += std::uint64_t{number(head, 6 + i) & 0x7FU} << (21 - 7 * i);
    head = read_into(buffer, read, tag);
  }
  if (!is_mp3_frame(head)) return false;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const char* name : {"Xing", "Info"}) {
    const std::size_t at = text.find(name);
    if (at != text.npos && at + 8 <= text.size()) return (number(head, at + 7) & 1U) == 0;
  }
  return text.find("VBRI") == text.npos;
}

bool is_header_unfinished(const ReadAt& read) {
  std::array<std::byte, 16> buffer;
  return promised_size(read_into(buffer, read)) == 0;
}

std::string cut_off_remark(const ReadAt& read, std::uint64_t size) {
  std::array<std::byte, 16> buffer;
  const Bytes head = read_into(buffer, read);
  if (starts_with(head, "OggS")) return ogg_end_remark(read, size);
  const auto promised = promised_size(head);
  if (!promised || *promised == 0 || *promised == 0xFFFFFFFFU) return {};
  const std::uint64_t whole = std::uint64_t{*promised} + 8;
  // Some writers count a padding byte that they do not write.
  if (whole <= size + 1) return {};
  return fmt::format("short: the header promises {} bytes, the file has {}", whole, size);
}

}  // namespace melflow
